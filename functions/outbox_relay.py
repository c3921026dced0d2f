"""Sends what the outbox holds: invoked by the stream of its table, so that a commit and its messages are one.

A message is sent at least once: dying between sending and marking sends it again, and its idempotency key makes that
harmless. What cannot be sent now fails the batch, which the stream delivers again; nothing is skipped.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import timedelta
from random import SystemRandom
from typing import TYPE_CHECKING, Any

from shared.backends.aws import client
from shared.backends.outbox import DynamoDBOutbox, read_posting
from shared.backends.powertools import PowertoolsTelemetry
from shared.backends.sqs import SqsQueue
from shared.clock import SystemClock
from shared.errors import EventError, Unavailable
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
    queues: Callable[[str], Queue]
    clock: Clock
    random: Random
    telemetry: Telemetry

    def relay(self, postings: Sequence[Posting]) -> None:
        """Send all and mark them as sent.

        Raises:
            Unavailable: some could not be sent; the stream delivers the batch again.
        """
        left = 0
        for worker in dict.fromkeys(posting.worker for posting in postings):
            mine = [posting for posting in postings if posting.worker == worker]
            messages = [Outgoing(posting.body, {}, posting.delay, posting.group) for posting in mine]
            report = send_all(self.queues(worker), messages, self.clock, self.random)
            for place in report.sent:
                self.outbox.mark_sent(mine[place].id, self.clock.now())
            self.telemetry.count("relayed", NO_JOB_TYPE, len(report.sent))
            for place, failure in report.failed.items():
                left += 1
                self.telemetry.warn("not_relayed", posting=mine[place].id, worker=worker, code=failure.code)
        self.telemetry.took("relay_size", NO_JOB_TYPE, timedelta(milliseconds=len(postings)))
        if left:
            message = f"{left} of {len(postings)} messages could not be sent: the stream delivers them again."
            raise Unavailable(message, dependency="sqs")


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
    return Relay(outbox, queues.__getitem__, SystemClock(), SystemRandom(), PowertoolsTelemetry("outbox-relay"))


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
