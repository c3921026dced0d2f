"""Taking locks: a batch in one exchange, several in one order, a short jittered wait where another has one."""

from __future__ import annotations

import threading
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any

from shared.backends.memory.cache import MemoryCache
from shared.clock import Surroundings, SystemClock
from shared.errors import CacheUnavailable
from shared.lease import Leases, Want
from shared.outcome import Because, Completed, Postponed
from shared.pipeline.keeper import Keeper
from shared.pipeline.locking import Locking, Locks
from shared.telemetry import Silent
from shared.worker import Worker
from tests.world import Context, Counter, FakeClock, Note, World, acquired, body, event, note_job, record_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pytest

    from shared.unit_of_work import UnitOfWork

TTL = timedelta(seconds=30)


class Counting(MemoryCache):
    """Counts exchanges, and loses the replies that it is told to lose."""

    exchanges = 0
    lose = 0

    def acquire_all(self, wants: Sequence[Want]) -> list[bool]:
        self.exchanges += 1
        granted = super().acquire_all(wants)
        if self.lose:
            self.lose -= 1
            raise CacheUnavailable
        return granted

    def finish(self, tags: Any, leases: Any) -> None:
        self.exchanges += 1
        super().finish(tags, leases)


def locking(clock: FakeClock | None = None) -> tuple[Locking, Counting]:
    clock = clock or FakeClock()
    cache = Counting(clock)
    return Locking(Leases(cache, Keeper(Silent()), clock), Surroundings(clock, Random(3), Counter())), cache  # noqa: S311 - repeatable


def locks(*keys: str, owner: str = "me") -> Locks:
    return Locks(tuple(Want(key, f"{owner}-{key}", TTL) for key in keys))


def test_the_locks_of_a_batch_are_taken_in_one_exchange() -> None:
    taking, cache = locking()
    batch = [locks(f"order/{number}", f"user/{number}", owner=str(number)) for number in range(10)]
    taking.take_together(batch)
    assert cache.exchanges == 1
    assert all(not each.missing for each in batch)
    for each in batch:
        assert taking.take(each, timedelta(0))
    assert cache.exchanges == 1


def test_jobs_of_one_batch_that_want_the_same_lock_get_it_one_after_another() -> None:
    taking, _ = locking()
    first, second = locks("order/1", owner="a"), locks("order/1", owner="b")
    taking.take_together([first, second])
    assert (len(first.leases), len(second.leases)) == (1, 0)
    assert not taking.take(second, timedelta(0))
    taking.leases.give_back(first.leases)
    assert taking.take(second, timedelta(0))


def test_no_lock_is_held_out_of_order_so_that_nobody_waits_in_a_circle() -> None:
    taking, cache = locking()
    acquired(cache, "a", "other", TTL)
    mine = locks("a", "b", "c")
    taking.take_together([mine])
    assert mine.leases == []
    assert acquired(cache, "b", "third", TTL)
    assert acquired(cache, "c", "third", TTL)


def test_lck_05_a_batch_whose_reply_was_lost_finds_its_own_locks() -> None:
    taking, cache = locking()
    cache.lose = 1
    batch = [locks("a", owner="x"), locks("b", owner="y")]
    taking.take_together(batch)
    assert [each.leases for each in batch] == [[], []]
    assert all(taking.take(each, timedelta(0)) for each in batch)


def test_nothing_wanted_costs_no_exchange() -> None:
    taking, cache = locking()
    taking.take_together([locks(), locks()])
    assert taking.take(locks(), timedelta(seconds=1))
    assert cache.exchanges == 0


def test_a_wait_is_short_spread_grows_and_ends() -> None:
    clock = FakeClock()
    taking, cache = locking(clock)
    acquired(cache, "a", "other", timedelta(hours=1))
    assert not taking.take(locks("a"), timedelta(seconds=2))
    assert 5 <= len(clock.slept) <= 30
    assert clock.slept[0] <= 0.025
    assert max(clock.slept) <= 0.25
    assert len(set(clock.slept)) == len(clock.slept)
    assert sum(clock.slept) < 2


def test_a_lock_that_gets_free_is_taken_without_going_back_to_the_queue() -> None:
    clock = FakeClock()
    taking, cache = locking(clock)
    acquired(cache, "a", "other", timedelta(milliseconds=300))
    assert taking.take(locks("a"), timedelta(seconds=1))
    assert 0.3 <= sum(clock.slept) < 0.6


def test_a_process_that_is_to_end_does_not_wait_for_locks() -> None:
    clock = FakeClock()
    taking, cache = locking(clock)
    acquired(cache, "a", "other", TTL)
    taking.here.stopping.set()
    assert not taking.take(locks("a"), timedelta(seconds=1))
    assert clock.slept == []


def test_i35_twenty_contenders_all_get_their_turn_one_at_a_time() -> None:
    clock = SystemClock()
    cache = MemoryCache(clock)
    taking = Locking(Leases(cache, Keeper(Silent()), clock), Surroundings(clock, Random(1), Counter()))  # noqa: S311 - repeatable
    inside: list[int] = []
    most: list[int] = []
    served: list[int] = []

    def contend(number: int) -> None:
        mine = locks("hot", owner=str(number))
        while not taking.take(mine, timedelta(seconds=1)):
            pass  # the queue would bring it back
        inside.append(number)
        most.append(len(inside))
        clock.sleep(0.01)
        inside.remove(number)
        served.append(number)
        taking.leases.give_back(mine.leases)

    threads = [threading.Thread(target=contend, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(served) == list(range(20))
    assert max(most) == 1


# In the pipeline.


def test_a_whole_batch_costs_one_exchange_for_its_locks_and_one_for_each_end() -> None:
    world = World(Worker("notes", jobs=(note_job(),)))
    world.cache = Counting(world.clock)
    records = [record_of(body(idempotency_key=f"k{n}", payload={"thing": f"t{n}"}), f"m{n}") for n in range(10)]
    assert world.handle(event(*records)) == {"batchItemFailures": []}
    assert world.cache.exchanges == 11


def test_a_contended_job_waits_a_moment_before_it_goes_back_to_the_queue() -> None:
    world = World.of(lock_wait=timedelta(seconds=1))
    acquired(world.cache, "thing/a", "another", timedelta(milliseconds=400))
    assert world.run(body())[0] == Completed(1)
    acquired(world.cache, "thing/a", "another", timedelta(minutes=1))
    outcome, _ = world.run(body(idempotency_key="k2"))
    assert isinstance(outcome, Postponed)
    assert outcome.because is Because.CONTENDED


def test_waiting_for_a_lock_never_takes_the_time_that_the_job_itself_needs() -> None:
    world = World.of(lock_wait=timedelta(seconds=9))
    acquired(world.cache, "thing/a", "another", timedelta(hours=1))
    outcome = world.execute(body(), left=timedelta(seconds=17))  # 10 for the job, 5 kept for the commit
    assert isinstance(outcome, Postponed)
    assert outcome.because is Because.CONTENDED
    assert sum(world.clock.slept) < 2


def test_a_fault_in_preparing_a_batch_costs_nobody_their_job(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World.of()

    def broken(self: Any, batch: Any) -> None:
        raise RuntimeError

    monkeypatch.setattr(Locking, "take_together", broken)
    assert world.handle(event(record_of(body())), Context()) == {"batchItemFailures": []}
    assert world.thing("a") is not None
    assert world.telemetry.warnings[0][0] == "not_prepared"


def test_a_message_that_cannot_be_read_stops_no_other_of_its_batch_from_being_prepared() -> None:
    seen = []

    def handler(payload: Note, work: UnitOfWork) -> None:
        seen.append(payload.thing)

    world = World.of(handler)
    answer = world.handle(event(record_of("no JSON", "m1"), record_of(body(), "m2")))
    assert answer == {"batchItemFailures": []}
    assert seen == ["a"]
    assert len(world.queue.dead) == 1
