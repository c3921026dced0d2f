"""How functions that run no job are invoked: their parts are connected once, their metrics told each time, streams read."""

from __future__ import annotations

import os
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from shared.errors import EventError
from shared.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from shared.telemetry import Telemetry

T = TypeVar("T")


def once(connect: Callable[[Settings], T]) -> Callable[[], T]:
    """The parts that `connect` makes of the function's settings: made at the first invocation, not at import, and kept.

    Raises:
        SettingsError: at each invocation, as long as a setting is missing or wrong.
    """

    @cache
    def connected() -> T:
        return connect(Settings.from_environ(os.environ))

    return connected


@contextmanager
def invoked(telemetry: Telemetry, context: Any) -> Iterator[None]:  # noqa: ANN401 - the Lambda context
    """One invocation: what is logged meanwhile names its request, and what was counted is told however it ends."""
    telemetry.invocation(context.aws_request_id)
    try:
        yield
    finally:
        telemetry.flush()


def new_images(event: object, table: str, *kinds: str) -> list[dict[str, Any]]:
    """The items of a table as some kinds of changes left them (INSERT, MODIFY), in the order of the stream.

    Raises:
        EventError: the event is not from a DynamoDB stream, or from one without new images.
    """
    records = event.get("Records") if isinstance(event, dict) else None
    if not isinstance(records, list) or not records:
        message = f"The event holds no list `Records` with entries: map this function to the stream of {table}."
        raise EventError(message)
    if any(record.get("eventSource") != "aws:dynamodb" for record in records):
        message = f"A record does not come from a DynamoDB stream: map this function to the stream of {table}."
        raise EventError(message)
    try:
        return [record["dynamodb"]["NewImage"] for record in records if record["eventName"] in kinds]
    except KeyError as error:
        message = f"A record holds no {error.args[0]}: let the stream of {table} bring new images."
        raise EventError(message) from error
