"""Sends what the outbox holds: invoked by the stream of its table, so that a commit and its messages are one.

A message is sent at least once: dying between sending and marking sends it again, and its idempotency key makes that
harmless. What cannot be sent now fails the batch, which the stream delivers again; nothing is skipped.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from random import SystemRandom
from typing import TYPE_CHECKING, Any

from shared.backends.aws import client
from shared.backends.outbox import DynamoDBOutbox, read_posting
from shared.backends.powertools import PowertoolsTelemetry
from shared.backends.sqs import SqsQueue
from shared.clock import SystemClock
from shared.errors import EventError, Unavailable
from shared.failpoints import Failpoint, failpoint
from shared.producer import Outgoing, send_all
from shared.settings import Settings
from shared.telemetry import NO_JOB_TYPE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from random import Random

    from shared.clock import Clock
    from shared.outbox import Outbox, Posting
    from shared.producer import Queue
    from shared.telemetry import Telemetry


@dataclass(frozen=True, slots=True)
class Relay:
    """Sends postings to the queues of their workers."""

    outbox: Outbox
    queues: Callable[[str], Queue | None]
    clock: Clock
    random: Random
    telemetry: Telemetry

    def relay(self, postings: Sequence[Posting]) -> None:
        """Send all and mark them as sent; what can never be sent is parked with its reason.

        Raises:
            Unavailable: some could not be sent now; the stream delivers the batch again.
        """
        failpoint(Failpoint.RELAY_RECEIVED)
        left = 0
        for worker in dict.fromkeys(posting.worker for posting in postings):
            left += self._send(worker, [posting for posting in postings if posting.worker == worker])
        if left:
            message = f"{left} of {len(postings)} messages could not be sent: the stream delivers them again."
            raise Unavailable(message, dependency="sqs")

    def _send(self, worker: str, postings: Sequence[Posting]) -> int:
        """Send what is for one worker; give how many are still to be sent."""
        queue = self.queues(worker)
        if queue is None:
            for posting in postings:
                self._park(posting, f"no worker {worker!r} is deployed here")
            return 0
        messages = [
            Outgoing(posting.body, posting.attributes, posting.delay, posting.group, posting.id) for posting in postings
        ]
        report = send_all(queue, messages, self.clock, self.random)
        failpoint(Failpoint.RELAY_SENT)
        for place in report.sent:
            self.outbox.mark_sent(postings[place].id, self.clock.now())
            failpoint(Failpoint.RELAY_MARKED)
        self.telemetry.count("relayed", NO_JOB_TYPE, len(report.sent))
        for place, refusal in report.failed.items():
            if refusal.final:
                self._park(postings[place], refusal.code)
            else:
                self.telemetry.warn("not_relayed", posting=postings[place].id, worker=worker, code=refusal.code)
        return sum(not refusal.final for refusal in report.failed.values())

    def _park(self, posting: Posting, reason: str) -> None:
        self.outbox.park(posting.id, reason)
        failpoint(Failpoint.RELAY_PARKED)
        self.telemetry.count("parked", NO_JOB_TYPE)
        self.telemetry.warn("parked", posting=posting.id, worker=posting.worker, reason=reason)


def read_stream(event: object) -> list[Posting]:
    """The postings that a DynamoDB stream event brings: its inserts, in order.

    Raises:
        EventError: the event is not from a DynamoDB stream with new images.
    """
    records = event.get("Records") if isinstance(event, dict) else None
    if not isinstance(records, list) or not records:
        message = "The event holds no list `Records` with entries: map this function to the outbox table's stream."
        raise EventError(message)
    if any(record.get("eventSource") != "aws:dynamodb" for record in records):
        message = "A record does not come from a DynamoDB stream: map this function to the outbox table's stream."
        raise EventError(message)
    return [read_posting(record["dynamodb"]["NewImage"]) for record in records if record["eventName"] == "INSERT"]


def connect(settings: Settings) -> Relay:
    """A relay for the stack that the settings name."""
    sqs = client("sqs")
    queues: Mapping[str, SqsQueue] = {name: SqsQueue(sqs, url) for name, url in settings.queues.items()}
    outbox = DynamoDBOutbox(client("dynamodb"), settings.outbox_table)
    return Relay(outbox, queues.get, SystemClock(), SystemRandom(), PowertoolsTelemetry("outbox-relay"))


_relays: list[Relay] = []


def handler(event: object, context: Any) -> dict[str, Any]:  # noqa: ANN401 - the Lambda context
    """Relay a batch of the stream; a failure has the whole batch delivered again."""
    if not _relays:
        _relays.append(connect(Settings.from_environ(os.environ)))
    relay = _relays[0]
    relay.telemetry.invocation(context.aws_request_id)
    try:
        relay.relay(read_stream(event))
    finally:
        relay.telemetry.flush()
    return {"batchItemFailures": []}
