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
) -> list[dict[str, Any]]:
    """At most `BATCH` items by their keys, read consistently and in any order; those that are not there are left out.

    What DynamoDB leaves out for being too much at once is asked for again.

    Raises:
        Unavailable: it did not give them all.
    """
    found: list[dict[str, Any]] = []
    for left in reversed(range(TRIES)):
        if not keys:
            return found
        request = {table: {"Keys": keys, "ConsistentRead": True, **asked}}
        with translated("dynamodb"):
            answer = dynamodb.batch_get_item(RequestItems=request)
        found += answer["Responses"].get(table, [])
        keys = answer.get("UnprocessedKeys", {}).get(table, {}).get("Keys", [])
        if keys and left:
            clock.sleep(WAIT.total_seconds() * 2 ** (TRIES - left) * random.random())
    if keys:
        message = f"DynamoDB gave {len(found)} items and not the rest."
        raise StoreUnavailable(message, dependency="dynamodb")
    return found
