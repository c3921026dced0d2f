"""Finds what the relay missed: committed messages that still wait although the stream has had its time. Runs every minute.

A stream may be off for longer than it keeps its records, or give up on some. What waits is found by a sparse index,
looked at consistently, and sent as the relay sends it; sending twice is harmless, since the idempotency key is in the body.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import timedelta
from random import SystemRandom
from typing import TYPE_CHECKING, Any

from shared.backends.aws import client
from shared.backends.outbox import DynamoDBOutbox
from shared.backends.powertools import PowertoolsTelemetry
from shared.backends.sqs import SqsQueue
from shared.clock import SystemClock
from shared.errors import Unavailable
from shared.outbox import SHARDS
from shared.relay import Relay
from shared.settings import Settings
from shared.telemetry import NO_JOB_TYPE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime
    from random import Random

    from shared.clock import Clock
    from shared.outbox import Overdue, Waiting
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
            Unavailable: the store did not answer for some shards; the others are swept.
        """
        lag = timedelta(0)
        failed: list[Unavailable] = []
        for shard in self.random.sample(range(SHARDS), SHARDS):
            try:
                lag = max(lag, self._sweep(shard, until))
            except Unavailable as error:
                failed.append(error)
        if failed:  # the lag is not known, and missing says so
            raise failed[0]
        self.telemetry.took("outbox_lag", NO_JOB_TYPE, lag)

    def _sweep(self, shard: int, until: datetime) -> timedelta:
        """Sweep a shard; give how long its oldest posting has waited."""
        now = self.clock.now()
        lag = timedelta(0)
        for batch in _batches(self.waiting.overdue(shard, now - self.grace, now)):
            lag = max(lag, now - batch[0].since)
            try:
                self.relay.relay([overdue.posting for overdue in batch])
            except Unavailable:  # those stay; what is behind them is not kept waiting
                self.telemetry.warn("not_swept", shard=shard, postings=len(batch))
            else:
                self.telemetry.count("swept", NO_JOB_TYPE, len(batch))
            if self.clock.now() > until - RESERVE:
                break
        return lag


def _batches(found: Iterator[Overdue]) -> Iterator[list[Overdue]]:
    batch: list[Overdue] = []
    for overdue in found:
        batch.append(overdue)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def connect(settings: Settings) -> Sweeper:
    """A sweeper for the stack that the settings name."""
    sqs = client("sqs")
    queues: Mapping[str, SqsQueue] = {name: SqsQueue(sqs, url) for name, url in settings.queues.items()}
    outbox = DynamoDBOutbox(client("dynamodb"), settings.outbox_table)
    clock, random, telemetry = SystemClock(), SystemRandom(), PowertoolsTelemetry("outbox-sweeper")
    relay = Relay(outbox, queues.get, clock, random, telemetry)
    return Sweeper(outbox, relay, clock, random, telemetry, GRACE * settings.pace)


_sweepers: list[Sweeper] = []


def handler(event: object, context: Any) -> None:  # noqa: ANN401, ARG001 - the Lambda context; the schedule says nothing
    """Sweep once."""
    if not _sweepers:
        _sweepers.append(connect(Settings.from_environ(os.environ)))
    sweeper = _sweepers[0]
    sweeper.telemetry.invocation(context.aws_request_id)
    left = timedelta(milliseconds=context.get_remaining_time_in_millis())
    try:
        sweeper.sweep(sweeper.clock.now() + left)
    finally:
        sweeper.telemetry.flush()
