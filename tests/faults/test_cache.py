"""The cache under fire: real processes on one cold key, a Valkey that hangs or forgets, readers beside writers."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from contextlib import contextmanager, suppress
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from redis import Redis

from local.processes.children import Children
from local.stack.valkey import Valkey
from shared.backends.redis.cache import RedisCache
from shared.backends.redis.connection import Connection
from shared.backends.redis.keys import tag_key
from shared.backends.redis.leases import RedisStore
from shared.cache import Cache
from shared.caching.store import Loaded
from shared.clock import Surroundings, SystemClock, random_token
from shared.errors import CacheUnavailable
from shared.tag import Tag, Version
from shared.telemetry import NO_JOB_TYPE, Silent
from tests.faults.cold_key import LEASE, THREADS, Readers
from tests.world import THINGS, World, body

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from shared.unit_of_work import UnitOfWork
    from tests.world import Note

PROCESSES = 5
LOAD = LEASE * 3


@pytest.fixture
def own_valkey(tmp_path: Path) -> Iterator[Valkey]:
    """A Valkey that may be stopped."""
    with Children() as children:
        server = Valkey(children, tmp_path)
        server.start()
        yield server


def connected(valkey: Valkey) -> Connection:
    return Connection(valkey.host, valkey.port, tls=False, cluster=False, most=20)


def cache_of(valkey: Valkey, **options: Any) -> tuple[Cache, Silent]:
    telemetry = Silent()
    here = Surroundings(SystemClock(), Random(1), random_token)  # noqa: S311 - repeatable
    return Cache(RedisCache(connected(valkey)), here, telemetry, **{"sample": 0.0, **options}), telemetry


def run(readers: Readers, survivors: int = PROCESSES) -> list[str]:
    """Start five processes at once, wait for them, and give what became of the loads."""
    spawning = multiprocessing.get_context("spawn")
    start = spawning.Barrier(PROCESSES)
    processes = [spawning.Process(target=readers.run, args=(start,)) for _ in range(PROCESSES)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    assert sorted(process.exitcode != 0 for process in processes) == [False] * survivors + [True] * (
        PROCESSES - survivors
    )
    return readers.loads()


def values(readers: Readers) -> list[str]:
    return [line for line in readers.journal.read_text().splitlines() if line.startswith("read")]


def test_cac_05_fifty_threads_of_five_processes_on_one_cold_key_load_once(own_valkey: Valkey, tmp_path: Path) -> None:
    readers = Readers(own_valkey.port, tmp_path / "journal", LOAD)  # a load takes three leases
    readers.journal.touch()
    assert run(readers) == ["begins", "ends"]
    assert values(readers) == ["read value"] * PROCESSES * THREADS


def test_cac_05_when_loads_fail_the_next_reader_tries_and_never_two_at_once(own_valkey: Valkey, tmp_path: Path) -> None:
    readers = Readers(own_valkey.port, tmp_path / "journal", LEASE / 2, fails=3)
    readers.journal.touch()
    assert run(readers) == ["begins", "fails"] * 3 + ["begins", "ends"]
    assert values(readers) == ["read value"] * (PROCESSES * THREADS - 3)  # three were told of the failure


def test_cac_05_when_the_loading_process_dies_one_other_reader_takes_over(own_valkey: Valkey, tmp_path: Path) -> None:
    readers = Readers(own_valkey.port, tmp_path / "journal", LOAD, dies=True)
    readers.journal.touch()
    assert run(readers, survivors=PROCESSES - 1) == ["begins", "begins", "ends"]
    assert values(readers) == ["read value"] * (PROCESSES - 1) * THREADS


def test_cac_05_a_thousand_keys_end_at_times_that_are_spread(valkey: Valkey) -> None:
    cache, _ = cache_of(valkey)
    for number in range(1000):
        cache.read(f"spread/{number}", "n", lambda: Loaded("v"))
    with Redis(port=valkey.port) as redis:
        pipeline = redis.pipeline(transaction=False)
        for number in range(1000):
            pipeline.pttl(tag_key(f"spread/{number}"))
        left = [int(time) / 1000 for time in pipeline.execute()]
    assert max(left) <= 600
    tenths = [sum(480 + 12 * step <= time < 492 + 12 * step for time in left) for step in range(-1, 10)]
    assert max(tenths) < 200
    assert len(set(left)) > 900


def test_i36_no_reader_beside_writers_ever_sees_what_was_before_the_last_invalidation(valkey: Valkey) -> None:
    """CAC-07 too: names are added to the tag while it is being invalidated."""
    store = RedisStore(connected(valkey))
    source, done = [0], [0]
    stale: list[tuple[int, int]] = []
    reads = [0]
    ended = threading.Event()

    def read(seed: int) -> None:
        random = Random(seed)  # noqa: S311 - repeatable
        cache, _ = cache_of(valkey, patience=timedelta(seconds=1))
        while not ended.is_set():
            begun = done[0]
            versioned = random.random() < 0.5
            name = f"{versioned}-{random.randrange(3)}"
            seen = cache.read(
                "raced",
                name,
                lambda versioned=versioned: Loaded(str(source[0]), Version(source[0]) if versioned else None),  # type: ignore[misc]
            )
            reads[0] += 1
            if int(seen or 0) < begun:
                stale.append((begun, int(seen or 0)))

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for version in range(1, 300):
        source[0] = version  # the commit
        store.finish([Tag("raced", Version(version) if version % 3 else None)], [])
        done[0] = version
    ended.set()
    for thread in threads:
        thread.join()
    assert reads[0] > 100
    assert stale == []


@contextmanager
def black_holed(valkey: Valkey) -> Iterator[None]:
    """The server accepts and never answers."""
    with Redis(port=valkey.port) as redis:
        pid = int(redis.info("server")["process_id"])
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_cac_10_with_redis_black_holed_reads_go_to_the_source_and_after_it_is_back_to_the_new_version(
    own_valkey: Valkey,
) -> None:
    # What was asked while it hung is done when it goes on, also for callers that are gone: their short leases end by themselves.
    cache, telemetry = cache_of(own_valkey)
    store = RedisStore(connected(own_valkey))
    source = [Loaded("v1", Version(1))]

    def read(**options: Any) -> str | None:
        return cache.read("order/1", "view", lambda: source[0], **options)

    assert read() == "v1"
    late = RedisCache(connected(own_valkey))
    late.fetch("order/1", "late", "late-reader", timedelta(minutes=1), None)
    with black_holed(own_valkey):
        source[0] = Loaded("v2", Version(2))  # committed
        with pytest.raises(CacheUnavailable):  # so its message is not acknowledged
            store.finish([Tag("order/1", Version(2))], [])
        assert [read() for _ in range(5)] == ["v2"] * 5
    assert telemetry.counts["cache_bypassed", NO_JOB_TYPE] == 5

    cache, telemetry = cache_of(own_valkey)  # another process, whose breaker knows of nothing
    assert read(at_least=Version(2)) == "v2"  # whoever knows of the commit, before its invalidation is repeated
    RedisStore(connected(own_valkey)).finish([Tag("order/1", Version(2))], [])  # the redelivery
    assert not late.store("order/1", "late", "late-reader", source[0], cache.lifetimes.of(source[0], Random(1)))  # noqa: S311
    assert [read() for _ in range(3)] == ["v2"] * 3
    assert telemetry.counts["cache_hit", NO_JOB_TYPE] == 2


def test_i39_a_server_that_comes_back_empty_is_filled_anew_and_takes_no_late_refill(own_valkey: Valkey) -> None:
    cache, telemetry = cache_of(own_valkey)

    def forgotten() -> Loaded:
        own_valkey.stop()
        own_valkey.start()
        return Loaded("old")

    assert cache.read("t", "n", forgotten) == "old"
    cache, telemetry = cache_of(own_valkey)
    assert cache.read("t", "n", lambda: Loaded("new")) == "new"
    assert telemetry.counts["cache_miss", NO_JOB_TYPE] == 1


def test_i36_a_server_without_memory_takes_invalidations_and_costs_readers_nothing(own_valkey: Valkey) -> None:
    cache, telemetry = cache_of(own_valkey)
    assert cache.read("t", "n", lambda: Loaded("old", Version(1))) == "old"
    with Redis(port=own_valkey.port) as redis:
        redis.config_set("maxmemory", 1)
    assert cache.read("t", "other", lambda: Loaded("new")) == "new"
    assert telemetry.counts["cache_bypassed", NO_JOB_TYPE] == 1  # the witness: the write of a refill token was refused
    RedisStore(connected(own_valkey)).finish([Tag("t", Version(2)), Tag("empty", Version(2))], [])
    assert cache.read("t", "n", lambda: Loaded("new", Version(2))) == "new"


def test_cac_01_a_reader_between_write_and_commit_and_a_crash_after_it_leave_no_old_value() -> None:
    reads: list[str | None] = []

    def read() -> str | None:
        stored = world.thing("a")
        view = str(stored["text"]) if stored else "nothing"
        here = Surroundings(world.clock, Random(1), random_token)  # noqa: S311 - repeatable
        return Cache(world.cache, here, Silent(), sample=0.0).read("thing/a", "view", lambda: Loaded(view))

    def handler(payload: Note, work: UnitOfWork) -> None:
        work.create(THINGS, id=payload.thing, text="new")
        work.invalidate("thing/a")
        reads.append(read())  # the write is staged, nothing is committed

    world = World.of(handler)
    finish = world.cache.finish

    class Crash(BaseException):
        """The process is gone."""

    def crash(tags: Any, leases: Any) -> None:
        raise Crash

    world.cache = _With(world.cache, finish=crash)
    with suppress(Crash):
        world.run(body())
    assert world.thing("a") is not None  # it was committed
    world.cache = _With(world.cache, finish=finish)
    world.clock.pass_(timedelta(minutes=1))  # the lease of the dead ends
    _, acknowledged = world.run(body())
    assert acknowledged
    assert (reads, read()) == (["nothing"], "new")


class _With:
    """A store, some of whose calls are others."""

    def __init__(self, inner: Any, **calls: Any) -> None:
        self._inner, self._calls = inner, calls

    def __getattr__(self, name: str) -> Any:
        return self._calls.get(name) or getattr(self._inner, name)
