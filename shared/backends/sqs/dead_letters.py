"""A dead-letter queue on SQS. What SQS does not mention is neither sent nor deleted."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from shared.backends.aws import code_of, translated
from shared.backends.sqs.attributes import to_api, to_event
from shared.backends.sqs.queue import is_fifo
from shared.delivery import read_event
from shared.desk.dead_letter_queue import Redrive
from shared.errors import Refused, Unavailable
from shared.limits import BATCH_ENTRIES
from shared.producer import NotTaken

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from shared.delivery import Delivery
    from shared.desk.dead_letter_queue import Copy

# What endpoints answer that have no move tasks; the last is the page of a server that fails over the question.
NO_SUCH_CALL = frozenset(
    {"InvalidAction", "NotImplemented", "UnknownOperationException", "UnsupportedOperation", "500"}
)


@dataclass(frozen=True, slots=True)
class SqsDeadLetters:
    """A dead-letter queue.

    Attributes:
        client: an SQS client.
        url: of the dead-letter queue.
        source_url: of the worker's queue.
        traces_alone: whether copies with an X-Ray header are sent one by one: stand-ins of AWS forget it in a batch.
        wait: seconds that SQS may look for letters: without it a part of its servers is asked, and may know of none.
    """

    client: Any
    url: str
    source_url: str
    wait: int = 1
    traces_alone: bool = False

    @property
    def fifo(self) -> bool:
        """Whether they are FIFO queues."""
        return is_fifo(self.url)

    def receive(self, hidden: timedelta) -> Sequence[Delivery]:
        """Receive at most ten letters."""
        with translated("sqs"):
            answer = self.client.receive_message(
                QueueUrl=self.url,
                MaxNumberOfMessages=BATCH_ENTRIES,
                VisibilityTimeout=math.ceil(hidden.total_seconds()),
                WaitTimeSeconds=self.wait,
                MessageAttributeNames=["All"],
                AttributeNames=["All"],
            )
        messages = answer.get("Messages", [])
        return read_event({"Records": [_record(message) for message in messages]}) if messages else ()

    def give_back(self, letters: Sequence[Delivery]) -> None:
        """Let others see letters at once, ten at a time."""
        for place in range(0, len(letters), BATCH_ENTRIES):
            entries = [
                {"Id": str(number), "ReceiptHandle": letter.receipt_handle, "VisibilityTimeout": 0}
                for number, letter in enumerate(letters[place : place + BATCH_ENTRIES])
            ]
            with translated("sqs"):
                self.client.change_message_visibility_batch(QueueUrl=self.url, Entries=entries)

    def send(self, copies: Sequence[Copy]) -> list[str | NotTaken]:
        """Send copies to the worker's queue."""
        results: list[str | NotTaken] = [NotTaken("NotMentioned", final=False)] * len(copies)
        entries = []
        for place, copy in enumerate(copies):
            if self.traces_alone and copy.trace is not None:
                results[place] = self._sent_alone(copy)
            else:
                entries.append(self._entry(str(place), copy))
        if not entries:
            return results
        with translated("sqs"):
            answer = self.client.send_message_batch(QueueUrl=self.source_url, Entries=entries)
        for entry in answer.get("Successful", []):
            results[int(entry["Id"])] = str(entry["MessageId"])
        for entry in answer.get("Failed", []):
            results[int(entry["Id"])] = NotTaken(str(entry["Code"]), final=bool(entry["SenderFault"]))
        return results

    def delete(self, letters: Sequence[Delivery]) -> frozenset[str]:
        """Delete letters by their receipts."""
        entries = [{"Id": str(place), "ReceiptHandle": each.receipt_handle} for place, each in enumerate(letters)]
        with translated("sqs"):
            answer = self.client.delete_message_batch(QueueUrl=self.url, Entries=entries)
        return frozenset(letters[int(entry["Id"])].message_id for entry in answer.get("Successful", []))

    def depth(self) -> int:
        """About how many letters there are."""
        names = [f"ApproximateNumberOfMessages{kind}" for kind in ("", "NotVisible", "Delayed")]
        with translated("sqs"):
            answer = self.client.get_queue_attributes(QueueUrl=self.url, AttributeNames=names)
        return sum(int(answer["Attributes"].get(name, 0)) for name in names)

    def redrive(self) -> Redrive | None:
        """The running task of AWS's own."""
        with translated("sqs"):
            answer = self.client.get_queue_attributes(QueueUrl=self.url, AttributeNames=["QueueArn"])
            arn = answer["Attributes"]["QueueArn"]
            try:
                found = self.client.list_message_move_tasks(SourceArn=arn, MaxResults=1)
            except ClientError as error:
                if code_of(error) in NO_SUCH_CALL:
                    return None
                raise
        for task in found.get("Results", []):
            if task["Status"] == "RUNNING":
                moved = int(task.get("ApproximateNumberOfMessagesMoved", 0))
                return Redrive(task.get("TaskHandle"), moved, int(task.get("ApproximateNumberOfMessagesToMove", moved)))
        return None

    def cancel(self, redrive: Redrive) -> None:
        """Stop that task."""
        with translated("sqs"):
            self.client.cancel_message_move_task(TaskHandle=redrive.handle)

    def _sent_alone(self, copy: Copy) -> str | NotTaken:
        entry = self._entry("", copy)
        del entry["Id"]
        try:
            with translated("sqs"):
                return str(self.client.send_message(QueueUrl=self.source_url, **entry)["MessageId"])
        except (Refused, Unavailable) as error:
            return NotTaken(str(error), final=isinstance(error, Refused))

    def _entry(self, place: str, copy: Copy) -> dict[str, Any]:
        entry: dict[str, Any] = {"Id": place, "MessageBody": copy.body}
        if copy.attributes:
            entry["MessageAttributes"] = to_api(copy.attributes)
        if copy.trace is not None:
            entry["MessageSystemAttributes"] = {"AWSTraceHeader": {"DataType": "String", "StringValue": copy.trace}}
        if is_fifo(self.source_url):
            entry["MessageDeduplicationId"] = copy.deduplication
            entry["MessageGroupId"] = copy.group or copy.deduplication
        elif copy.group is not None:
            entry["MessageGroupId"] = copy.group
        return entry


def _record(message: dict[str, Any]) -> dict[str, Any]:
    """A message as Lambda would hand it over."""
    return {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": message.get("Attributes", {}),
        "messageAttributes": to_event(message.get("MessageAttributes", {})),
        "eventSource": "aws:sqs",
    }
