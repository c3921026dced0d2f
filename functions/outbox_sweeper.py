"""Finds what nobody else sends: runs every minute, and does nothing that could not be done twice.

Committed messages that still wait although the stream has had its time; jobs that have not ended and whose message is
gone; occurrences of jobs that recur; brakes on queues whose time is up, in case that who set them is dead.

A stream may be off for longer than it keeps its records, or give up on some. What waits is found by a sparse index,
looked at consistently, and sent as the relay sends it; sending twice is harmless, since the idempotency key is in the body.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from random import SystemRandom
from typing import TYPE_CHECKING, Any

from functions.invoked import invoked, once
from shared.backends.aws import client
from shared.backends.dynamodb.brakes import DynamoDBBrakes
from shared.backends.dynamodb.outbox import DynamoDBOutbox
from shared.backends.dynamodb.parts import DynamoDBParts
from shared.backends.dynamodb.unended import DynamoDBUnended
from shared.backends.mappings import LambdaMappings, Mapped
from shared.backends.powertools import PowertoolsTelemetry
from shared.backends.sqs.queue import SqsQueue
from shared.clock import SystemClock
from shared.errors import Unavailable
from shared.outbox import SHARDS
from shared.rounds.brake_rounds import Watchdog
from shared.rounds.counting import Counting
from shared.rounds.each import try_each
from shared.rounds.recurrence import Recurrence, Recurring
from shared.rounds.relay import Relay
from shared.rounds.rescue import Rescue
from shared.telemetry import NO_JOB_TYPE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime
    from random import Random

    from shared.clock import Clock
    from shared.outbox import Overdue, Waiting
    from shared.settings import Settings
    from shared.telemetry import Telemetry

GRACE = timedelta(minutes=2)  # the relay's, from the commit
BATCH = 50  # postings that are sent before the next are looked for
RESERVE = timedelta(seconds=5)  # of an invocation, for what is under way


@dataclass(frozen=True, slots=True)
class Sweeper:
    """Sends what waits for longer than the grace."""

    waiting: Waiting
    relay: Relay
    clock: Clock
    random: Random
    telemetry: Telemetry
    grace: timedelta = GRACE

    def sweep(self, until: datetime) -> None:
        """Go through all shards, in any order, until the time is up; the next invocation goes on.

        The lag is told in any case, also as zero: its alarm rings when it is missing.

        Raises:
            Unavailable: the store did not answer for some shards; the others are swept. So they are whatever is raised.
        """
        lags = [timedelta(0)]
        # Where a shard fails the lag is not known, and missing says so.
        try_each(partial(self._sweep, shard, until, lags) for shard in self.random.sample(range(SHARDS), SHARDS))
        self.telemetry.took("outbox_lag", NO_JOB_TYPE, max(lags))

    def _sweep(self, shard: int, until: datetime, lags: list[timedelta]) -> None:
        """Sweep a shard; note how long its oldest posting has waited."""
        now = self.clock.now()
        held: set[str] = set()
        for batch in _batches(self.waiting.overdue(shard, now - self.grace, now)):
            lags.append(now - batch[0].since)
            try:
                self.relay.relay([overdue.posting for overdue in batch], held)
            except Unavailable:  # those stay; what is behind them is not kept waiting
                self.telemetry.warn("not_swept", shard=shard, postings=len(batch))
            else:
                self.telemetry.count("swept", NO_JOB_TYPE, len(batch))
            if self.clock.now() > until - RESERVE:
                break


def _batches(found: Iterator[Overdue]) -> Iterator[list[Overdue]]:
    batch: list[Overdue] = []
    for overdue in found:
        batch.append(overdue)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


@dataclass(frozen=True, slots=True)
class Round:
    """What is done every minute. Each part is tried, whatever became of the others."""

    sweeper: Sweeper
    rescue: Rescue
    recurring: Recurring
    watchdog: Watchdog

    def make(self, until: datetime) -> None:
        """Make one round.

        Raises:
            Unavailable: a store did not answer; the next round does what is left. So it does whatever is raised.
        """
        rescues = [partial(self.rescue.rescue, shard, until - RESERVE) for shard in range(SHARDS)]
        sweep = partial(self.sweeper.sweep, until)
        try_each([self.recurring.post_due, self.watchdog.make_round, sweep, *rescues])


def connect(settings: Settings) -> Round:
    """The round for the stack that the settings name."""
    sqs, dynamodb = client("sqs"), client("dynamodb")
    queues: Mapping[str, SqsQueue] = {name: SqsQueue(sqs, url) for name, url in settings.queues.items()}
    outbox = DynamoDBOutbox(dynamodb, settings.outbox_table)
    clock, random, telemetry = SystemClock(), SystemRandom(), PowertoolsTelemetry("outbox-sweeper")
    unended = DynamoDBUnended(dynamodb, settings.jobs_table)
    parts = DynamoDBParts(dynamodb, settings.jobs_table, settings.outbox_table, clock, random)
    relay = Relay(outbox, unended, queues.get, clock, random, telemetry)
    mapped = {name: Mapped.read(text) for name, text in settings.mappings.items()}
    brakes, mappings = DynamoDBBrakes(dynamodb, settings.jobs_table), LambdaMappings(client("lambda"), mapped)
    return Round(
        Sweeper(outbox, relay, clock, random, telemetry, GRACE * settings.pace),
        Rescue(unended, outbox, settings.routes, clock, telemetry, Counting(parts, settings.routes, clock)),
        Recurring(outbox, [Recurrence.read(*told, settings.routes) for told in settings.recurring.items()], clock),
        Watchdog(tuple(mapped), brakes, mappings, clock, telemetry),
    )


round_here = once(connect)


def handler(event: object, context: Any) -> None:  # noqa: ANN401, ARG001 - the Lambda context; the schedule says nothing
    """Make one round."""
    round_ = round_here()
    left = timedelta(milliseconds=context.get_remaining_time_in_millis())
    with invoked(round_.sweeper.telemetry, context):
        round_.make(round_.sweeper.clock.now() + left)
