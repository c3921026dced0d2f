"""What is to be seen from outside while the stack works: queue, tables, dead letters, and the provider's ledger."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from local.stack import Stack

ATTRIBUTE = "tahan.dead-letter"
WAITING: Final = "ApproximateNumberOfMessages"
IN_FLIGHT: Final = "ApproximateNumberOfMessagesNotVisible"
DELAYED: Final = "ApproximateNumberOfMessagesDelayed"
HIDDEN_FOR = 600  # seconds; seen once is enough, and receiving is the only way to see the next ones


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message in the dead-letter queue; a reason of None means that it came without one."""

    body: str
    reason: str | None


@dataclass(frozen=True, slots=True)
class Observation:
    """One look at everything.

    Attributes:
        waiting: messages on the queue that nobody holds, delayed ones included.
        in_flight: messages held by a consumer or waiting for another attempt.
        dead: messages on the dead-letter queue by its own count.
        dead_letters: those read from it.
        orders: status by order id.
        jobs: status by idempotency key, of jobs that were sent here.
        charges: charges by intent.
        provoked: intents for which the provider has done all the harm it was to do.
        killed: processes that the provider killed.
    """

    waiting: int = 0
    in_flight: int = 0
    dead: int = 0
    dead_letters: tuple[DeadLetter, ...] = ()
    orders: Mapping[str, str] = field(default_factory=dict)
    jobs: Mapping[str, str] = field(default_factory=dict)
    charges: Mapping[str, int] = field(default_factory=dict)
    provoked: frozenset[str] = frozenset()
    killed: int = 0

    @property
    def is_at_rest(self) -> bool:
        """Whether nothing is on the way any more."""
        return self.waiting == self.in_flight == 0


class Observer:
    """Looks at a stack; remembers the dead letters it has read."""

    def __init__(self, stack: Stack, job_type: str) -> None:
        self._stack = stack
        self._job_type = job_type
        self._dead: dict[str, DeadLetter] = {}

    def look(self) -> Observation:
        """One look."""
        outputs, dynamodb = self._stack.outputs, self._stack.clients.dynamodb
        depth = self._depth(outputs["QueuePayments"])
        self._read_dead_letters(outputs["DeadLetterQueuePayments"])
        orders = dynamodb.scan(TableName=outputs["TableOrders"], ConsistentRead=True)["Items"]
        jobs = dynamodb.scan(TableName=outputs["JobsTable"], ConsistentRead=True)["Items"]
        ledger = self._stack.provider.ledger()
        return Observation(
            waiting=depth[WAITING] + depth[DELAYED],
            in_flight=depth[IN_FLIGHT],
            dead=sum(self._depth(outputs["DeadLetterQueuePayments"]).values()),
            dead_letters=tuple(self._dead.values()),
            orders={item["order_id"]["S"]: item["status"]["S"] for item in orders},
            jobs={
                item["idempotency_key"]["S"]: item["status"]["S"]
                for item in jobs
                if item.get("job_type", {}).get("S") == self._job_type
            },
            charges=ledger["charges_by_intent"],
            provoked=frozenset(ledger["provoked"]),
            killed=len(ledger["killed"]),
        )

    def _depth(self, queue: str) -> dict[str, int]:
        answer = self._stack.clients.sqs.get_queue_attributes(
            QueueUrl=queue, AttributeNames=[WAITING, IN_FLIGHT, DELAYED]
        )
        return {str(name): int(count) for name, count in answer["Attributes"].items()}

    def _read_dead_letters(self, queue: str) -> None:
        answer = self._stack.clients.sqs.receive_message(
            QueueUrl=queue,
            MaxNumberOfMessages=10,
            VisibilityTimeout=HIDDEN_FOR,
            MessageAttributeNames=["All"],
        )
        for message in answer.get("Messages", []):
            attributes: Mapping[str, Any] = message.get("MessageAttributes", {})
            told = attributes.get(ATTRIBUTE, {}).get("StringValue")
            reason = None if told is None else json.loads(told).get("reason")
            self._dead[message["MessageId"]] = DeadLetter(message["Body"], reason)
