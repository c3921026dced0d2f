"""What a DynamoDB stream invokes a function with."""

from __future__ import annotations

from typing import Any

from shared.errors import EventError


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
