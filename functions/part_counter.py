"""Counts the parts of split jobs: invoked by the stream of the job records, with the parts that have ended.

An end is noted at least once, and counts once. What cannot be noted now fails the batch, which the stream delivers again.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import SystemRandom
from typing import TYPE_CHECKING, Any

from functions.invoked import invoked, new_images, once
from shared.backends.aws import client
from shared.backends.dynamodb.job_record_item import read_place
from shared.backends.dynamodb.parts import DynamoDBParts
from shared.backends.powertools import PowertoolsTelemetry
from shared.clock import SystemClock
from shared.job_record import Status
from shared.parts import STATES, Ended
from shared.rounds.counting import Counting
from shared.telemetry import NO_JOB_TYPE

if TYPE_CHECKING:
    from shared.settings import Settings
    from shared.telemetry import Telemetry


def read_ends(event: object) -> list[Ended]:
    """The ends of parts that a DynamoDB stream event brings, in order; all other changes are left out.

    Raises:
        EventError: the event is not from a DynamoDB stream with new images.
    """
    ends = []
    for image in new_images(event, "the job records", "INSERT", "MODIFY"):
        place = read_place(image)
        if place is not None and (status := Status(image["status"]["S"])) in STATES:
            ends.append(Ended(place, STATES[status]))
    return ends


@dataclass(frozen=True, slots=True)
class PartCounter:
    """Counts what the stream brings."""

    counting: Counting
    telemetry: Telemetry

    def count(self, event: object) -> None:
        """Count the ends of an event.

        Raises:
            Unavailable: a store did not answer; the stream brings the batch again.
        """
        ends = read_ends(event)
        if ends:
            self.counting.count(ends)
            self.telemetry.count("parts_ended", NO_JOB_TYPE, len(ends))


def connect(settings: Settings) -> PartCounter:
    """A counter for the stack that the settings name."""
    clock, dynamodb = SystemClock(), client("dynamodb")
    parts = DynamoDBParts(dynamodb, settings.jobs_table, settings.outbox_table, clock, SystemRandom())
    return PartCounter(Counting(parts, settings.routes, clock), PowertoolsTelemetry("part-counter"))


counter_here = once(connect)


def handler(event: object, context: Any) -> dict[str, Any]:  # noqa: ANN401 - the Lambda context
    """Count a batch of the stream; a failure has the whole batch delivered again."""
    counter = counter_here()
    with invoked(counter.telemetry, context):
        counter.count(event)
    return {"batchItemFailures": []}
