"""A worker's queue on SQS: sending, hiding, dead-lettering. Receiving and deleting is Lambda's event source mapping's."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shared.backends.aws import translated
from shared.backends.sqs.attributes import dead_letter_attributes, of_strings
from shared.producer import DELAY_ON_FIFO, NotTaken, standard_group

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from shared.delivery import Delivery
    from shared.producer import Outgoing


@dataclass(frozen=True, slots=True)
class SqsQueue:
    """A queue and its dead-letter queue.

    Attributes:
        client: an SQS client.
        url: of the queue.
        dead_letter_url: of its dead-letter queue; empty for one who only sends.
    """

    client: Any
    url: str
    dead_letter_url: str = ""

    @property
    def fifo(self) -> bool:
        """Whether it is a FIFO queue."""
        return is_fifo(self.url)

    def send(self, batch: Sequence[Outgoing]) -> Sequence[str | NotTaken]:
        """Send at most ten messages; an entry that SQS mentions in neither list counts as not sent."""
        results: list[str | NotTaken] = [
            DELAY_ON_FIFO if self.fifo and message.delay else NotTaken("NotMentioned", final=False) for message in batch
        ]
        entries = [
            self._entry(str(place), message)
            for place, message in enumerate(batch)
            if results[place] is not DELAY_ON_FIFO
        ]
        if not entries:
            return results
        with translated("sqs"):
            answer = self.client.send_message_batch(QueueUrl=self.url, Entries=entries)
        for entry in answer.get("Successful", []):
            results[int(entry["Id"])] = str(entry["MessageId"])
        for entry in answer.get("Failed", []):
            results[int(entry["Id"])] = NotTaken(str(entry["Code"]), final=bool(entry["SenderFault"]))
        return results

    def hide(self, delivery: Delivery, after: timedelta) -> None:
        """Change the message's visibility, in whole seconds and never less than asked."""
        with translated("sqs"):
            self.client.change_message_visibility(
                QueueUrl=self.url,
                ReceiptHandle=delivery.receipt_handle,
                VisibilityTimeout=math.ceil(after.total_seconds()),
            )

    def dead_letter(self, delivery: Delivery, reason: str) -> None:
        """Send a copy with its reason to the dead-letter queue."""
        attributes = dead_letter_attributes(delivery, reason)
        more: dict[str, Any] = {}
        if delivery.group is not None:
            more["MessageGroupId"] = delivery.group
        if is_fifo(self.dead_letter_url):
            more["MessageDeduplicationId"] = f"{delivery.message_id}-{json.loads(reason)['death']}"
        if delivery.trace is not None:
            more["MessageSystemAttributes"] = {"AWSTraceHeader": {"DataType": "String", "StringValue": delivery.trace}}
        with translated("sqs"):
            self.client.send_message(
                QueueUrl=self.dead_letter_url, MessageBody=delivery.body, MessageAttributes=attributes, **more
            )

    def _entry(self, place: str, message: Outgoing) -> dict[str, Any]:
        entry: dict[str, Any] = {"Id": place, "MessageBody": message.body}
        if message.attributes:
            entry["MessageAttributes"] = of_strings(message.attributes)
        if self.fifo:  # needs a group: without one a message is one by itself
            entry["MessageDeduplicationId"] = message.deduplication
            entry["MessageGroupId"] = message.group or message.deduplication
            return entry
        if message.delay:
            entry["DelaySeconds"] = int(message.delay.total_seconds())
        group = standard_group(message.group, message.tenant)
        if group is not None:
            entry["MessageGroupId"] = group
        return entry


def is_fifo(url: str) -> bool:
    """Whether a queue is one of SQS's FIFO queues, whose names end so."""
    return url.endswith(".fifo")
