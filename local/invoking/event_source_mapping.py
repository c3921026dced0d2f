"""Lambda's event source mapping for SQS, small and with its true semantics, for tests that need no stand-in.

A batch is received, the handler is called, and what the partial response does not name is deleted; an error, or an
answer that AWS would not accept, brings the whole batch back. Visibility, receive counts and redrive are the queue's.
Source: Lambda developer guide, "Handling errors for an SQS event source in Lambda".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from shared.backends.sqs.attributes import to_event

if TYPE_CHECKING:
    from collections.abc import Callable


class SqsClient(Protocol):
    """What is used of an SQS client."""

    def receive_message(self, **arguments: Any) -> Any:  # noqa: ANN401 - as boto3 has it
        """Receive."""
        ...

    def delete_message(self, **arguments: Any) -> Any:  # noqa: ANN401 - as boto3 has it
        """Delete."""
        ...


@dataclass(slots=True)
class EventSourceMapping:
    """One poller of one queue.

    Attributes:
        sqs: client.
        url: of the queue.
        handler: Lambda handler.
        context: makes the Lambda context of an invocation.
        batch_size: at most 10.
        errors: what invocations raised.
    """

    sqs: SqsClient
    url: str
    handler: Callable[[dict[str, Any], Any], Any]
    context: Callable[[], Any]
    batch_size: int = 10
    errors: list[Exception] = field(default_factory=list)

    def poll(self) -> int:
        """Run one batch; give how many messages it had. A queue that does not answer is asked again by the next poll."""
        try:
            answer = self.sqs.receive_message(
                QueueUrl=self.url,
                MaxNumberOfMessages=self.batch_size,
                MessageAttributeNames=["All"],
                AttributeNames=["All"],
                WaitTimeSeconds=0,
            )
        except Exception as error:  # noqa: BLE001 - whatever it is, pollers go on
            self.errors.append(error)
            return 0
        messages = answer.get("Messages", [])
        if not messages:
            return 0
        try:
            answered = self.handler({"Records": [record_of(message, self.url) for message in messages]}, self.context())
            coming_back = _coming_back(answered, {message["MessageId"] for message in messages})
        except Exception as error:  # noqa: BLE001 - whatever a function raises, its batch comes back
            self.errors.append(error)
            return len(messages)
        for message in messages:
            if message["MessageId"] not in coming_back:
                self._delete(message["ReceiptHandle"])
        return len(messages)

    def _delete(self, receipt: str) -> None:
        try:
            self.sqs.delete_message(QueueUrl=self.url, ReceiptHandle=receipt)
        except Exception as error:  # noqa: BLE001 - the message comes back and is found to be done
            self.errors.append(error)


def _coming_back(answer: object, known: set[str]) -> set[str]:
    """The ids that are not to be deleted, by AWS's rules: no list is success, a wrong entry brings all back."""
    failures = answer.get("batchItemFailures") if isinstance(answer, dict) else None
    if not failures:
        return set()
    named = {failure.get("itemIdentifier") if isinstance(failure, dict) else None for failure in failures}
    return {name for name in named if isinstance(name, str)} if named <= known else known


def record_of(message: dict[str, Any], url: str) -> dict[str, Any]:
    """A message as Lambda hands it over."""
    return {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": message.get("Attributes", {}),
        "messageAttributes": to_event(message.get("MessageAttributes", {})),
        "md5OfBody": message["MD5OfBody"],
        "eventSource": "aws:sqs",
        "eventSourceARN": f"arn:aws:sqs:eu-central-1:000000000000:{url.rpartition('/')[2]}",
        "awsRegion": "eu-central-1",
    }
