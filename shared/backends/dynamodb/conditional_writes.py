"""Writes of one item of DynamoDB under a condition: done, or the item that is in the way; what that means is the caller's affair."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from shared.backends.aws import code_of, translated

if TYPE_CHECKING:
    from collections.abc import Callable


def update(client: Any, **request: Any) -> dict[str, Any] | None:  # noqa: ANN401 - as `client` gives it
    """Update an item; None where that is done, else the item in the way, empty if there is none or if the request does not ask for it.

    Raises:
        StoreUnavailable: no answer, or throttled; it may be done.
        Refused: DynamoDB refuses a value.
    """
    is_done, item = updated(client, **request)
    return None if is_done else item


def updated(client: Any, **request: Any) -> tuple[bool, dict[str, Any]]:  # noqa: ANN401 - as `client` gives it
    """The same for one who asks for attributes: whether it is done, and those, or the item in the way.

    Raises:
        StoreUnavailable, Refused: as for `update`.
    """
    is_done, answer = _written(client.update_item, request)
    return is_done, answer.get("Attributes" if is_done else "Item", {})


def put(client: Any, **request: Any) -> dict[str, Any] | None:  # noqa: ANN401 - as `client` gives it
    """Put an item; None where that is done, else the item in the way, as for `update`.

    Raises:
        StoreUnavailable, Refused: as for `update`.
    """
    is_done, answer = _written(client.put_item, request)
    return None if is_done else answer.get("Item", {})


def _written(write: Callable[..., dict[str, Any]], request: dict[str, Any]) -> tuple[bool, Any]:
    """Whether it is written, and the answer or the refusal."""
    try:
        with translated("dynamodb"):
            return True, write(**request)
    except ClientError as error:
        if code_of(error) != "ConditionalCheckFailedException":
            raise
        return False, error.response
