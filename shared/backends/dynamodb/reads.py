"""Reading many items of DynamoDB: page by page, and batch by batch until all are there."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from shared.backends.aws import translated
from shared.errors import StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from random import Random

    from shared.clock import Clock

BATCH = 100  # keys of one BatchGetItem
TRIES = 4
WAIT = timedelta(milliseconds=40)


def query(dynamodb: Any, **asked: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401 - as `client` gives it
    """All items that a query finds, page by page.

    Raises:
        Unavailable: no answer, or throttled.
    """
    more: dict[str, Any] = {}
    while True:
        with translated("dynamodb"):
            page = dynamodb.query(**asked, **more)
        yield from page["Items"]
        if "LastEvaluatedKey" not in page:
            return
        more = {"ExclusiveStartKey": page["LastEvaluatedKey"]}


def batch_get(
    dynamodb: Any,  # noqa: ANN401 - as `client` gives it
    table: str,
    keys: Sequence[dict[str, Any]],
    clock: Clock,
    random: Random,
    **asked: Any,  # noqa: ANN401 - more of the request
) -> Iterator[dict[str, Any]]:
    """Items by their keys, read consistently, batch by batch and in any order; those that are not there are left out.

    Raises:
        StoreUnavailable: it did not give them all.
    """
    for place in range(0, len(keys), BATCH):
        yield from _batch(dynamodb, table, keys[place : place + BATCH], clock, random, asked)


def _batch(  # noqa: PLR0913, PLR0917 - as `batch_get` has them
    dynamodb: Any,  # noqa: ANN401
    table: str,
    keys: Sequence[dict[str, Any]],
    clock: Clock,
    random: Random,
    asked: dict[str, Any],
) -> list[dict[str, Any]]:
    """One batch. What DynamoDB leaves out for being too much at once is asked for again."""
    found: list[dict[str, Any]] = []
    for left in reversed(range(TRIES)):
        request = {table: {"Keys": keys, "ConsistentRead": True, **asked}}
        with translated("dynamodb"):
            answer = dynamodb.batch_get_item(RequestItems=request)
        found += answer["Responses"].get(table, [])
        keys = answer.get("UnprocessedKeys", {}).get(table, {}).get("Keys", [])
        if not keys:
            return found
        if left:
            clock.sleep(WAIT.total_seconds() * 2 ** (TRIES - left) * random.random())
    message = f"DynamoDB gave {len(found)} items and not the rest."
    raise StoreUnavailable(message, dependency="dynamodb")
