"""What a DynamoDB stream invokes a function with."""

from __future__ import annotations

from typing import Any

from shared.errors import EventError


def stream_records(event: object, table: str) -> list[dict[str, Any]]:
    """The records of an event of a table's stream, in order.

    Raises:
        EventError: the event is not from a DynamoDB stream.
    """
    records = event.get("Records") if isinstance(event, dict) else None
    if not isinstance(records, list) or not records:
        message = f"The event holds no list `Records` with entries: map this function to the stream of {table}."
        raise EventError(message)
    if any(record.get("eventSource") != "aws:dynamodb" for record in records):
        message = f"A record does not come from a DynamoDB stream: map this function to the stream of {table}."
        raise EventError(message)
    return records
