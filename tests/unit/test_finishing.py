"""The end of work in Redis: who shares an exchange with whom, who waits for whom and for how long, and what fails alone."""

from __future__ import annotations

import sys
import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from shared.backends.memory.cache import MemoryCache
from shared.clock import SystemClock
from shared.consumer import Consumer
from shared.errors import CacheUnavailable
from shared.lease import Lease, Leases, Want
from shared.pipeline.finishing import Finishing
from shared.pipeline.keeper import Keeper
from shared.tag import Tag
from shared.telemetry import Silent
from tests.world import Context, World, acquired, body, event, failures, record_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shared.clock import Clock

TTL = timedelta(seconds=30)
LONG = timedelta(seconds=20)
A, B, C = Tag("a"), Tag("b"), Tag("c")


class Noting(MemoryCache):
    """A cache that notes its exchanges, and fails those that `refuse` names."""

    def __init__(self, *refuse: Tag, clock: Clock | None = None) -> None:
        super().__init__(clock or SystemClock())
        self.refuse = set(refuse)
        self.exchanges: list[tuple[list[str], int]] = []

    def finish(self, tags: Sequence[Tag], leases: Sequence[tuple[str, str]]) -> None:
        self.exchanges.append(([tag.name for tag in tags], len(leases)))
        if self.refuse & set(tags):
            raise CacheUnavailable
        super().finish(tags, leases)


def finishing(cache: Noting, gathering: timedelta = LONG) -> Finishing:
    return Finishing(Leases(cache, Keeper(Silent()), SystemClock()), SystemClock(), gathering)


class Job(threading.Thread):
    """A delivery that has committed and tells Redis, in a thread of its own."""

    def __init__(self, to: Finishing, name: str, tags: Sequence[Tag], leases: Sequence[Lease] = ()) -> None:
        super().__init__(daemon=True)
        self.todo = to, name, tags, leases
        self.error: BaseException | None = None
        self.start()

    def run(self) -> None:
        to, name, tags, leases = self.todo
        try:
            to.finish(name, tags, leases)
        except (CacheUnavailable, SystemExit) as error:
            self.error = error


def end(*jobs: Job) -> list[bool]:
    for each in jobs:
        each.join(20)
        assert not each.is_alive()
    return [each.error is None for each in jobs]


def held(to: Finishing, key: str) -> Lease:
    lease = to.leases.take(Want(key, f"token-{key}", TTL))
    assert lease is not None
    return lease


def test_one_alone_waits_for_nobody() -> None:
    cache = Noting()
    to = finishing(cache)
    to.expect("m1")
    to.finish("m1", [A], [held(to, "k")])
    assert cache.exchanges == [(["a"], 1)]
    assert acquired(cache, "k", "another", TTL)


def test_nothing_to_tell_costs_nothing_and_no_wait() -> None:
    cache = Noting()
    to = finishing(cache)
    to.expect("m2")
    assert end(Job(to, "m1", [])) == [True]
    assert cache.exchanges == []


def test_who_dies_while_it_waits_keeps_nobody_from_telling(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Noting()
    to = finishing(cache)
    with monkeypatch.context() as dying:
        dying.setattr(Finishing, "_gather", lambda _: sys.exit())
        assert end(Job(to, "m1", [A])) == [False]
    assert end(Job(to, "m2", [B])) == [True]
    assert cache.exchanges == [(["b"], 0)]


def test_those_that_commit_at_the_same_time_share_one_exchange() -> None:
    cache = Noting()
    to = finishing(cache)
    leases = {name: held(to, name) for name in ("m1", "m2", "m3")}
    for name in leases:
        to.expect(name)
    jobs = [Job(to, name, [tag], [leases[name]]) for name, tag in zip(leases, (A, B, C), strict=True)]
    assert end(*jobs) == [True, True, True]
    ((tags, number),) = cache.exchanges
    assert (sorted(tags), number) == (["a", "b", "c"], 3)


def test_a_commit_that_lasts_is_not_waited_for() -> None:
    cache = Noting()
    to = finishing(cache, timedelta(milliseconds=20))
    to.expect("slow")
    assert end(Job(to, "quick", [A])) == [True]
    assert end(Job(to, "slow", [B])) == [True]
    assert [tags for tags, _ in cache.exchanges] == [["a"], ["b"]]


def test_nobody_waits_where_that_would_keep_others_waiting() -> None:
    cache = Noting()
    to = finishing(cache)
    to.gathers = False
    to.expect("m2")
    assert end(Job(to, "m1", [A])) == [True]
    assert cache.exchanges == [(["a"], 0)]


def test_one_that_is_refused_takes_nobody_along() -> None:
    cache = Noting(B)
    to = finishing(cache)
    first, second = held(to, "k1"), held(to, "k2")
    to.expect("m1")
    to.expect("m2")
    assert end(Job(to, "m1", [A], [first]), Job(to, "m2", [B], [second])) == [True, False]
    assert len(cache.exchanges) == 3
    assert (["a"], 1) in cache.exchanges  # with its lease, which nobody renews any more


def test_a_thread_that_ends_while_it_tells_for_all_leaves_each_to_itself() -> None:
    class Ending(Noting):
        def finish(self, tags: Sequence[Tag], leases: Sequence[tuple[str, str]]) -> None:
            super().finish(tags, leases)
            if len(self.exchanges) == 1:
                raise SystemExit

    cache = Ending()
    to = finishing(cache)
    to.expect("m1")
    to.expect("m2")
    end(Job(to, "m1", [A]), Job(to, "m2", [B]))
    assert sorted(len(tags) for tags, _ in cache.exchanges) == [1, 2]


class Together:
    """A store of records whose commits go on when as many as are awaited are under way."""

    def __init__(self, database: Any, number: int) -> None:
        self.database = database
        self.barrier = threading.Barrier(number)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.database, name)

    def commit(self, *arguments: Any) -> None:
        self.barrier.wait(20)
        self.database.commit(*arguments)


def test_ten_jobs_of_a_batch_take_two_exchanges_with_redis(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.runtime.Finishing", lambda leases, clock, _: Finishing(leases, clock, LONG))

    class Counting(Noting):
        def acquire_all(self, wants: Any) -> Any:
            self.exchanges.append(([], len(wants)))
            return super().acquire_all(wants)

    world = World.of()
    world.cache = cache = Counting(clock=world.clock)
    world.database = Together(world.database, 10)
    records = [
        record_of(body(idempotency_key=f"k{place}", payload={"thing": f"A{place}"}), f"m{place}") for place in range(10)
    ]
    assert failures(world.handle(event(*records))) == []
    assert [(len(tags), number) for tags, number in cache.exchanges] == [(0, 10), (10, 10)]


@pytest.mark.parametrize(("threads", "gathers"), [(3, True), (2, False)])
def test_a_batch_with_deliveries_that_wait_for_a_thread_does_not_gather(threads: int, gathers: bool) -> None:
    world = World.of()
    world.worker = type(world.worker)("notes", jobs=world.worker.jobs, batch_concurrency=threads)
    runtime = world.runtime
    records = [record_of(body(idempotency_key=f"k{place}", payload={"thing": "A"}), f"m{place}") for place in range(3)]
    Consumer(world.worker, runtime).handle(event(*records), Context())
    assert runtime.execution.finishing.gathers is gathers


def test_a_batch_in_which_a_delivery_is_behind_another_of_its_group_does_not_gather() -> None:
    world = World.of()
    world.worker = type(world.worker)("notes", jobs=world.worker.jobs, fifo=True)
    runtime = world.runtime
    records = [
        record_of(body(idempotency_key=f"k{place}", payload={"thing": "A"}), f"m{place}", group="g")
        for place in range(2)
    ]
    Consumer(world.worker, runtime).handle(event(*records), Context())
    assert runtime.execution.finishing.gathers is False
