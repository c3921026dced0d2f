"""A simulated run of the cache alone: writers that commit and invalidate, late puts, readers that are slow, freeze and die."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any

from shared.backends.memory.cache import MemoryCache
from shared.cache import Cache
from shared.caching.lives import Lifetimes
from shared.caching.store import AFTERLIFE, Loaded
from shared.clock import Surroundings
from shared.errors import CacheUnavailable
from shared.tag import Fresh, Tag, Version
from shared.telemetry import Silent
from tests.simulation.faults import Faults, Faulty, Weather
from tests.simulation.history import demand
from tests.simulation.scheduler import Process, ProcessClock, Scheduler

if TYPE_CHECKING:
    from collections.abc import Callable

SECONDS = 900.0
LIFETIMES = Lifetimes(soft=timedelta(seconds=20), hard=timedelta(seconds=120), absent=timedelta(seconds=10))
LEASE = timedelta(seconds=10)
TAGS = ("a", "b")
# What was read before a commit may be stored as long as its token is good, and then lives for the hard time.
BOUND = (LIFETIMES.hard + LEASE + AFTERLIFE).total_seconds()


class SourceDown(Exception):  # noqa: N818 - how it is
    """The source does not answer."""


@dataclass
class Source:
    """An aggregate for each tag: its version, when each version was committed, and up to where all is invalidated."""

    committed: dict[str, list[float]] = field(default_factory=lambda: {tag: [0.0] for tag in TAGS})
    invalidated: dict[str, int] = field(default_factory=lambda: dict.fromkeys(TAGS, 0))

    def version(self, tag: str) -> int:
        return len(self.committed[tag]) - 1


class CachedWorld:
    """A run, made from its seed. What is read is checked on the spot."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)  # noqa: S311 - repeatable
        self.scheduler = Scheduler(self.random)
        self.faults = Faults(self.scheduler, self.random, Weather.drawn(self.random))
        self.store = MemoryCache(ProcessClock(self.scheduler, Process("server")))
        self.source = Source()
        self.telemetry = Silent()
        self.processes = 0
        self.reads = 0
        self.loading: dict[tuple[str, str], int] = {}

    def run(self) -> None:
        """Run for a while.

        Raises:
            Violation: a read gave what it must not.
        """
        for number in range(2):
            self._spawn(f"writer-{number}", self._write)
        for number in range(4):
            self._spawn(f"reader-{number}", self._read)
        if self.faults.weather.amnesia:
            self._spawn("amnesia", self._forget)
        try:
            self.scheduler.run(lambda: self.scheduler.now > SECONDS, SECONDS + 1)
        finally:
            self.scheduler.stop()

    def _spawn(self, name: str, body: Callable[[], None]) -> Process:
        process = Process(name)
        self.scheduler.spawn(name, process, body)
        return process

    def _reached(self, process: Process, weather: Weather) -> Any:
        return Faulty(self.store, process, Faults(self.scheduler, self.random, weather), CacheUnavailable())

    def _write(self) -> None:
        """Commit, then refresh or invalidate until it is answered, as redelivery does; and now and then put what was committed."""
        random, source = self.random, self.source
        drawn = self.faults.weather
        redelivered = Weather(reply_lost=drawn.reply_lost * 5, not_done=drawn.not_done * 5, slow=drawn.slow)
        entries = self._reached(Process("writer"), redelivered)
        while True:
            self.scheduler.sleep(random.choice((0.01, 1.0, 10.0, 60.0)) * random.random())
            tag = random.choice(TAGS)
            source.committed[tag].append(self.scheduler.now)
            number = source.version(tag)
            version = Version(number) if random.random() < 0.5 else None
            if random.random() < 0.5:
                self._put(tag, number)
            self.scheduler.sleep(random.choice((0.0, 0.0, 0.0, 300.0)) * random.random())  # frozen after its commit
            told = self._refresh(tag, number) if random.random() < 0.5 else Tag(tag, version)
            while True:
                try:
                    entries.finish([told], [])
                    break
                except CacheUnavailable:
                    self.scheduler.sleep(random.uniform(0, 30))
                    told = told.bare
            source.invalidated[tag] = max(source.invalidated[tag], number)

    def _refresh(self, tag: str, number: int) -> Tag:
        entry = Loaded(str(number), Version(number))
        return Tag(tag, entry.version, Fresh("versioned", entry, LIFETIMES.of(entry, self.random)))

    def _put(self, tag: str, number: int) -> None:
        """A put of its own process, which may come minutes late."""
        process = Process(f"put-{tag}-{number}")
        entries = self._reached(process, self.faults.weather)
        delay = self.random.choice((0.0, 0.1, 30.0, 300.0)) * self.random.random()

        def put() -> None:
            self.scheduler.sleep(delay)
            entry = Loaded(str(number), Version(number))
            with suppress(CacheUnavailable):
                entries.put(tag, "versioned", entry, LIFETIMES.of(entry, self.random))

        self.scheduler.spawn(process.name, process, put)

    def _read(self) -> None:
        """Readers of one process after the other: each may die or freeze in the middle of a read."""
        while True:
            self.processes += 1
            process = Process(f"reads-{self.processes}")
            here = Surroundings(ProcessClock(self.scheduler, process), self.random, self._token)
            entries = self._reached(process, self.faults.weather)
            cache = Cache(
                entries,
                here,
                self.telemetry,
                LIFETIMES,
                lease=LEASE,
                sample=0.05,
                renewal=lambda _renew, _every: nullcontext(),
            )
            self.scheduler.spawn(process.name, process, lambda cache=cache: self._read_on(cache))  # type: ignore[misc]
            while not process.is_dead:
                self.scheduler.sleep(5)

    def _read_on(self, cache: Cache) -> None:
        random, source = self.random, self.source
        while True:
            self.scheduler.sleep(random.uniform(0.05, 3.0))
            tag, name = random.choice(TAGS), random.choice(("versioned", "plain"))
            knows = random.random() < 0.2 and name == "versioned"
            begun, invalidated, known = self.scheduler.now, source.invalidated[tag], source.version(tag)
            try:
                value = cache.read(
                    tag,
                    name,
                    lambda tag=tag, name=name: self._load(tag, name),  # type: ignore[misc]
                    at_least=Version(known) if knows else None,
                )
            except SourceDown:
                continue
            seen = int(value or 0)
            self.reads += 1
            demand(seen >= invalidated, "I36", f"{tag}/{name}: {seen} after {invalidated} was invalidated")
            demand(seen >= known or not knows, "I37", f"{tag}/{name}: {seen} for a reader that knew {known}")
            if seen < known:
                age = begun - source.committed[tag][seen + 1]
                demand(age <= BOUND, "I37", f"{tag}/{name}: {seen} is {age} s old")

    def _load(self, tag: str, name: str) -> Loaded:
        if self.random.random() < 0.05:
            raise SourceDown
        number = self.source.version(tag)
        self.scheduler.sleep(self.random.choice((0.01, 0.1, 0.1, 2.0, 40.0)) * self.random.random())
        if number == 0:
            return Loaded(None, Version(0) if name == "versioned" else None)
        return Loaded(str(number), Version(number) if name == "versioned" else None)

    def _forget(self) -> None:
        while True:
            self.scheduler.sleep(self.random.uniform(1, 200))
            self.faults.fired["amnesia"] += 1
            self.store.forget()

    def _token(self) -> str:
        return f"{self.random.getrandbits(64):x}"
