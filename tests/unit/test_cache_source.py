"""What goes round the cache: few at once, equal ones shared, and nothing older than the read that gets it."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest

from shared.caching.source import SOURCE, Source
from shared.caching.store import Loaded
from shared.errors import ClaimLost, DeclarationError, LeaseLost, RetryLater, Stopping, Unavailable
from tests.unit.cache_scene import Down, Gone, Origin, Scene, Slow, in_threads

LONG = timedelta(seconds=30)


def waits(source: Source, key: object, number: int) -> None:
    """Return when so many wait for the load of that key that has not begun."""
    for _ in range(30_000):
        with source._lock:
            flight = source._gathering.get(key)
        if flight is not None and len(flight._waiters) >= number:
            return
        threading.Event().wait(0.001)
    pytest.fail("nobody waits")


def test_i36_a_read_that_begins_during_a_load_never_gets_what_that_load_read() -> None:
    """The process does not reach Redis, the writer does: it commits and invalidates while a load is under way."""
    scene = Scene(Gone(), source=Source(patience=LONG))
    held, read_it, go_on = ["v1"], threading.Event(), threading.Event()

    def load() -> Loaded:
        seen = held[0]
        read_it.set()
        assert go_on.wait(30)
        return Loaded(seen)

    early, given_early = in_threads(1, lambda _: scene.read(load))
    assert read_it.wait(30)
    held[0] = "v2"  # committed, and its invalidation is answered
    late, given_late = in_threads(5, lambda _: scene.read(load))
    waits(scene.cache.source, ("t", "n", None), 4)
    go_on.set()
    for thread in early + late:
        thread.join(30)
    assert given_early == ["v1"]
    assert given_late == ["v2"] * 5


def test_i39_those_who_come_during_a_load_share_the_next_one_and_two_of_a_key_never_run_at_once() -> None:
    slow, source = Slow(), Source(patience=LONG)
    first, _ = in_threads(1, lambda _: source.load("k", slow))
    assert slow.begun.acquire(timeout=30)
    rest, answers = in_threads(20, lambda _: source.load("k", slow))
    waits(source, "k", 19)
    slow.go.set()
    for thread in first + rest:
        thread.join(30)
    assert answers == [Loaded("value")] * 20
    assert (slow.loads, slow.most) == (2, 1)
    assert (source._gathering, source._running) == ({}, {})


@pytest.mark.parametrize("ending", [RetryLater("busy"), LeaseLost(), ClaimLost(), Stopping(), KeyboardInterrupt()])
def test_who_shares_a_load_is_not_ended_by_what_ended_another_s_job(ending: BaseException) -> None:
    source, blocks = Source(at_once=1, patience=LONG), Slow()
    blocking, _ = in_threads(1, lambda _: source.load("other", blocks))
    assert blocks.begun.acquire(timeout=30)
    ends, follows = Origin(ending), Origin("value")
    told: list[object] = []

    def lead() -> None:
        try:
            source.load("k", ends)
        except BaseException as error:  # noqa: BLE001 - a thread that is told to end
            told.append(error)

    leader = threading.Thread(target=lead, daemon=True)
    leader.start()
    waits(source, "k", 0)
    followers, answers = in_threads(3, lambda _: source.load("k", follows))
    waits(source, "k", 3)
    blocks.go.set()
    for thread in (*blocking, leader, *followers):
        thread.join(30)
    assert told == [ending]
    assert answers == [Loaded("value")] * 3
    assert follows.loads >= 1


def test_who_shares_a_load_is_not_shed_because_another_had_less_time() -> None:
    source, blocks = Source(at_once=1, patience=LONG), Slow()
    blocking, _ = in_threads(1, lambda _: source.load("other", blocks))
    assert blocks.begun.acquire(timeout=30)
    hurried, refused = in_threads(1, lambda _: source.load("k", Origin("never"), patience=timedelta(seconds=1)))
    waits(source, "k", 0)
    patient, answers = in_threads(1, lambda _: source.load("k", Origin("value")))
    for thread in hurried:
        thread.join(30)
    assert [type(error) for error in refused] == [Unavailable]
    blocks.go.set()
    for thread in blocking + patient:
        thread.join(30)
    assert answers == [Loaded("value")]


def test_i39_a_load_that_reads_another_entry_needs_no_second_place() -> None:
    """Else all places would be held by loads that wait for one, just when Redis is gone."""
    scene = Scene(Gone(), source=Source(at_once=1, patience=timedelta(milliseconds=50)))

    def part() -> Loaded:
        return Loaded("part")

    def whole() -> Loaded:
        return Loaded(f"whole of {scene.cache.read('t', 'part', part)}")

    assert scene.cache.read("t", "whole", whole) == "whole of part"
    assert scene.cache.read("t", "whole", whole) == "whole of part"  # and it has given its place back


@pytest.mark.parametrize("entries", [None, Gone()])
def test_a_load_that_reads_the_entry_that_it_is_to_fill_is_refused_at_once(entries: Any) -> None:
    scene = Scene(entries)

    def directly() -> Loaded:
        return Loaded(scene.cache.read("t", "n", directly))

    def through_another() -> Loaded:
        return Loaded(scene.cache.read("t", "other", directly))

    for load in (directly, through_another):
        with pytest.raises(DeclarationError, match="reads the entry that it is to fill"):
            scene.read(load)
    assert scene.clock.slept == []
    assert scene.read(Origin("value")) == "value"


@pytest.mark.parametrize("error", [Down(), TimeoutError()])
def test_who_shares_a_load_shares_its_failure(error: Exception) -> None:
    source, blocks, fails = Source(at_once=1, patience=LONG), Slow(), Origin(error)
    blocking, _ = in_threads(1, lambda _: source.load("other", blocks))
    assert blocks.begun.acquire(timeout=30)
    sharing, answers = in_threads(3, lambda _: source.load("k", fails))
    waits(source, "k", 2)
    blocks.go.set()
    for thread in blocking + sharing:
        thread.join(30)
    assert answers == [error] * 3
    assert fails.loads == 1
    assert source.load("k", Origin("anew")) == Loaded("anew")


def test_who_waits_for_a_load_that_takes_too_long_is_shed() -> None:
    slow = Slow()
    source = Source(patience=timedelta(milliseconds=30))
    threads, answers = in_threads(1, lambda _: source.load("k", slow))
    assert slow.begun.acquire(timeout=30)
    with pytest.raises(Unavailable, match="Too many reads") as shed:
        source.load("k", slow)
    assert shed.value.dependency == SOURCE
    slow.go.set()
    threads[0].join(30)
    assert answers == [Loaded("value")]
    assert slow.loads == 1
    assert source.load("k", Origin("anew")) == Loaded("anew")


def test_a_caller_without_time_loads_where_it_need_not_wait_and_is_shed_where_it_must() -> None:
    source, slow = Source(patience=LONG), Slow()
    assert source.load("k", Origin("value"), patience=timedelta(0)) == Loaded("value")
    threads, _ = in_threads(1, lambda _: source.load("k", slow))
    assert slow.begun.acquire(timeout=30)
    with pytest.raises(Unavailable):
        source.load("k", slow, patience=timedelta(0))
    slow.go.set()
    threads[0].join(30)


def test_i36_many_readers_beside_a_writer_never_get_what_was_before_they_began() -> None:
    source, version, stale = Source(at_once=4, patience=LONG), [0], []
    ended = threading.Event()

    def load() -> Loaded:
        seen = version[0]
        threading.Event().wait(0.0005)
        return Loaded(str(seen))

    def read(_: int) -> None:
        while not ended.is_set():
            begun = version[0]
            seen = int(source.load("k", load).value or 0)
            if seen < begun:
                stale.append((begun, seen))

    threads, failures = in_threads(6, read)
    for number in range(1, 400):
        version[0] = number
        threading.Event().wait(0.0005)
    ended.set()
    for thread in threads:
        thread.join(30)
    assert stale == []
    assert failures == [None] * 6
