"""One receipt of a message, as Lambda hands it over; reads the event loudly and knows no job."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shared.clock import from_millis
from shared.errors import EventError, Malformed

if TYPE_CHECKING:
    from datetime import datetime

DEAD_LETTER_ATTRIBUTE = "tahan.dead-letter"
ENCODING_ATTRIBUTE = "content-encoding"  # of a body


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message as received.

    Attributes:
        message_id: SQS's id, the only name that the partial response knows; it decides nothing else.
        receipt_handle: of this receipt.
        body: text.
        attributes: message attributes as in the event (`stringValue`, `binaryValue`, `dataType`).
        receive_count: how often SQS has delivered it, this time included.
        sent_at: when it was first sent.
        group: MessageGroupId, or None.
        trace: X-Ray header, or None.
        sequence: its place in the order of a FIFO queue; None on a standard one.
    """

    message_id: str
    receipt_handle: str
    body: str
    attributes: Mapping[str, Mapping[str, Any]]
    receive_count: int
    sent_at: datetime | None
    group: str | None
    trace: str | None
    sequence: int | None = None

    def text_attribute(self, name: str) -> str | None:
        """The string value of a message attribute, or None."""
        value = self.attributes.get(name, {}).get("stringValue")
        return value if isinstance(value, str) else None

    @property
    def string_attributes(self) -> dict[str, str] | None:
        """The message attributes by name, if all of them are plain strings."""
        if any(value.get("dataType") != "String" for value in self.attributes.values()):
            return None
        return {name: str(value.get("stringValue", "")) for name, value in self.attributes.items()}

    @property
    def death(self) -> int:
        """How often this message had been dead-lettered when it was sent: 0 before the first time.

        Raises:
            Malformed: the attribute is there and cannot be read.
        """
        text = self.text_attribute(DEAD_LETTER_ATTRIBUTE)
        if text is None:
            return 0
        try:
            death = json.loads(text)["death"]
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise Malformed(
                "invalid-dead-letter-attribute", f"{DEAD_LETTER_ATTRIBUTE} must be JSON with `death`"
            ) from error
        if not isinstance(death, int) or isinstance(death, bool) or death < 0:
            raise Malformed("invalid-dead-letter-attribute", "`death` must be a count")
        return death


def read_event(event: object) -> tuple[Delivery, ...]:
    """Read the deliveries of an SQS event.

    Raises:
        EventError: the event is not from SQS, or a record lacks what the partial response needs; answering it would
            lose messages, so the whole batch comes back.
    """
    records = event.get("Records") if isinstance(event, Mapping) else None
    if not isinstance(records, list) or not records:
        message = "The event holds no list `Records` with entries: map this function to an SQS queue."
        raise EventError(message)
    deliveries = tuple(_read_record(record, place) for place, record in enumerate(records))
    ids = {delivery.message_id for delivery in deliveries}
    if len(ids) != len(deliveries):
        message = "Two records of the batch share a messageId: the partial response could not tell them apart."
        raise EventError(message)
    return deliveries


def _read_record(record: object, place: int) -> Delivery:
    if not isinstance(record, Mapping) or record.get("eventSource") != "aws:sqs":
        source = record.get("eventSource") if isinstance(record, Mapping) else type(record).__name__
        message = f"Record {place} comes from {source!r}, not from 'aws:sqs': map this function to an SQS queue."
        raise EventError(message)
    texts = {}
    for name in ("messageId", "receiptHandle", "body"):
        value = record.get(name)
        if not isinstance(value, str) or (not value.strip() and name != "body"):
            message = f"Record {place} has no {name}: the batch is handed back whole."
            raise EventError(message)
        texts[name] = value
    system = record.get("attributes", {})
    attributes = record.get("messageAttributes", {})
    if not isinstance(system, Mapping) or not isinstance(attributes, Mapping):
        message = f"Record {place}: `attributes` and `messageAttributes` must be objects."
        raise EventError(message)
    sent = str(system.get("SentTimestamp", ""))
    count = str(system.get("ApproximateReceiveCount", "1"))
    sequence = str(system.get("SequenceNumber", ""))
    return Delivery(
        message_id=texts["messageId"],
        receipt_handle=texts["receiptHandle"],
        body=texts["body"],
        attributes=attributes,
        receive_count=int(count) if count.isdigit() else 1,
        sent_at=from_millis(int(sent)) if sent.isdigit() else None,
        group=system.get("MessageGroupId"),
        trace=system.get("AWSTraceHeader"),
        sequence=int(sequence) if sequence.isdigit() else None,
    )
