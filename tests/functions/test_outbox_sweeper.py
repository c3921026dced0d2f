"""The sweeper: what the stream missed is sent within its bound, and nothing that waits is kept from it by another."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from functions.outbox_sweeper import BATCH, GRACE, Sweeper
from shared.backends.dynamodb.outbox import shard_of
from shared.backends.memory.database import MemoryDatabase
from shared.errors import StoreUnavailable
from shared.outbox import SHARDS, Posting
from shared.producer import NotTaken, Outgoing
from shared.rounds.relay import Relay
from shared.telemetry import NO_JOB_TYPE, Silent
from tests.world import START, FakeClock

if TYPE_CHECKING:
    from collections.abc import Sequence

HOUR = timedelta(hours=1)


class Heard(Silent):
    """Also keeps durations."""

    def __init__(self) -> None:
        super().__init__()
        self.times: dict[str, timedelta] = {}

    def took(self, metric: str, job_type: str, time: timedelta) -> None:
        self.times[metric] = time


@dataclass
class Swept:
    """An outbox, queues by worker, and a sweeper over them."""

    gone: set[str] = field(default_factory=set)
    slow: timedelta = timedelta(0)

    def __post_init__(self) -> None:
        self.clock = FakeClock()
        self.outbox: Any = MemoryDatabase(self.clock)
        self.sent: list[str] = []
        self.telemetry = Heard()

    def queue(self, worker: str) -> Any:
        swept = self

        class Queue:
            def send(self, batch: Sequence[Outgoing]) -> Sequence[str | NotTaken]:
                swept.clock.pass_(swept.slow)
                if worker in swept.gone:
                    return [NotTaken("ServiceUnavailable", final=False)] * len(batch)
                swept.sent += [message.body for message in batch]
                return ["id"] * len(batch)

        return None if worker == "stranger" else Queue()

    def post(self, name: str, worker: str = "notes", age: timedelta = HOUR) -> None:
        self.outbox.post(Posting(name, worker, name), self.clock.now() - age)

    def sweep(self, left: timedelta = timedelta(minutes=1)) -> None:
        random = Random(5)  # noqa: S311 - repeatable
        relay = Relay(self.outbox, self.outbox, self.queue, self.clock, random, self.telemetry)
        sweeper = Sweeper(self.outbox, relay, self.clock, random, self.telemetry)
        sweeper.sweep(self.clock.now() + left)


def test_i10_what_waits_beyond_the_grace_is_sent_and_what_is_younger_is_left_to_the_relay() -> None:
    swept = Swept()
    swept.post("old", age=GRACE + timedelta(seconds=1))
    swept.post("young", age=GRACE)
    swept.sweep()
    assert swept.sent == ["old"]
    assert set(swept.outbox.sent) == {"old"}
    assert swept.telemetry.times["outbox_lag"] == GRACE + timedelta(seconds=1)
    assert swept.telemetry.counts["swept", NO_JOB_TYPE] == 1


def test_obs_07_the_lag_is_told_also_when_nothing_waits() -> None:
    swept = Swept()
    swept.sweep()
    assert swept.telemetry.times == {"outbox_lag": timedelta(0)}


def test_what_is_sent_is_not_swept_again() -> None:
    swept = Swept()
    swept.post("p")
    swept.sweep()
    swept.sweep()
    assert swept.sent == ["p"]


def test_a_queue_that_takes_nothing_keeps_no_other_waiting() -> None:
    swept = Swept(gone={"ill"})
    for number in range(3 * BATCH):
        swept.post(f"ill-{number}", "ill", HOUR * 2)
        swept.post(f"well-{number}", "well")
    swept.post("lost", "stranger", HOUR * 3)
    swept.sweep(left=HOUR)
    assert sorted(swept.sent) == sorted(f"well-{number}" for number in range(3 * BATCH))
    assert set(swept.outbox.parked) == {"lost"}
    assert HOUR * 3 <= swept.telemetry.times["outbox_lag"] < HOUR * 3.1
    swept.gone.clear()
    swept.sweep(left=HOUR)
    assert len(swept.sent) == 6 * BATCH


def test_a_sweep_ends_with_its_invocation_and_the_next_one_goes_on() -> None:
    swept = Swept(slow=timedelta(seconds=20))
    for number in range(SHARDS * 2 * BATCH):
        swept.post(f"p{number}")
    swept.sweep()
    first = len(swept.sent)
    assert 0 < first < SHARDS * 2 * BATCH
    swept.slow = timedelta(0)
    swept.sweep()
    assert len(swept.sent) == SHARDS * 2 * BATCH
    assert len(set(swept.sent)) == len(swept.sent)


@pytest.mark.parametrize("raised", [StoreUnavailable("no answer"), KeyError("due_at")])
def test_a_shard_that_gives_no_answer_leaves_the_others_swept_and_the_lag_unknown(raised: Exception) -> None:
    swept = Swept()
    for number in range(100):
        swept.post(f"p{number}")
    overdue = swept.outbox.overdue

    class Flaky:
        def overdue(self, shard: int, *moments: Any) -> Any:
            if shard == first:
                raise raised
            return overdue(shard, *moments)

        def __getattr__(self, name: str) -> Any:
            return getattr(swept.outbox, name)

    (first, *_) = Random(1).sample(range(SHARDS), SHARDS)  # noqa: S311 - as the sweeper draws them
    random = Random(1)  # noqa: S311 - repeatable
    relay = Relay(swept.outbox, swept.outbox, swept.queue, swept.clock, random, swept.telemetry)
    sweeper = Sweeper(Flaky(), relay, swept.clock, random, swept.telemetry)
    with pytest.raises(type(raised)):
        sweeper.sweep(swept.clock.now() + HOUR)
    assert sorted(swept.sent) == sorted(name for number in range(100) if shard_of(name := f"p{number}") != first)
    assert swept.telemetry.times == {}


def test_a_delay_counts_from_the_commit() -> None:
    swept = Swept()
    swept.outbox.post(Posting("p", "notes", "p", timedelta(minutes=15)), START - timedelta(minutes=5))
    ((overdue,),) = [found for shard in range(SHARDS) if (found := list(swept.outbox.overdue(shard, START, START)))]
    assert overdue.posting.delay == timedelta(minutes=10)
