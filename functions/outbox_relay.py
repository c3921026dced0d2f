"""Sends what the outbox holds: invoked by the stream of its table, so that a commit and its messages are one.

A message is sent at least once: dying between sending and marking sends it again, and its idempotency key makes that
harmless. What cannot be sent now fails the batch, which the stream delivers again; nothing is skipped.
"""

from __future__ import annotations

from random import SystemRandom
from typing import TYPE_CHECKING, Any

from functions.invoked import invoked, new_images, once
from shared.backends.aws import client
from shared.backends.dynamodb.outbox import DynamoDBOutbox, read_waiting
from shared.backends.dynamodb.unended import DynamoDBUnended
from shared.backends.powertools import PowertoolsTelemetry
from shared.backends.sqs.queue import SqsQueue
from shared.clock import SystemClock
from shared.rounds.relay import Relay

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from shared.outbox import Posting
    from shared.settings import Settings


def read_stream(event: object, now: datetime) -> list[Posting]:
    """The postings that a DynamoDB stream event brings, with what is left of their delays: its inserts, in order.

    Raises:
        EventError: the event is not from a DynamoDB stream with new images.
    """
    return [read_waiting(image, now) for image in new_images(event, "the outbox table", "INSERT")]


def connect(settings: Settings) -> Relay:
    """A relay for the stack that the settings name."""
    sqs = client("sqs")
    queues: Mapping[str, SqsQueue] = {name: SqsQueue(sqs, url) for name, url in settings.queues.items()}
    dynamodb = client("dynamodb")
    outbox, records = DynamoDBOutbox(dynamodb, settings.outbox_table), DynamoDBUnended(dynamodb, settings.jobs_table)
    return Relay(outbox, records, queues.get, SystemClock(), SystemRandom(), PowertoolsTelemetry("outbox-relay"))


relay_here = once(connect)


def handler(event: object, context: Any) -> dict[str, Any]:  # noqa: ANN401 - the Lambda context
    """Relay a batch of the stream; a failure has the whole batch delivered again."""
    relay = relay_here()
    with invoked(relay.telemetry, context):
        relay.relay(read_stream(event, relay.clock.now()))
    return {"batchItemFailures": []}
