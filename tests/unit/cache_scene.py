"""A cache over a memory store, with an origin that tests make slow, silent or gone."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from random import Random
from typing import TYPE_CHECKING, Any

from shared.backends.memory.cache import MemoryCache
from shared.cache import Cache
from shared.caching.lives import Lifetimes
from shared.caching.store import Loaded
from shared.clock import Surroundings
from shared.errors import CacheUnavailable
from shared.telemetry import NO_JOB_TYPE, Silent
from tests.world import Counter, FakeClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import timedelta


SPREADLESS = Lifetimes(jitter=0.0)


class Down(Exception):  # noqa: N818 - how the source is
    """The source does not answer."""


class Origin:
    """Gives what it holds, or raises it, and counts how often it is asked. `meanwhile` happens during each load."""

    def __init__(self, *held: Loaded | str | BaseException | None) -> None:
        self.held = list(held)
        self.loads = 0
        self.meanwhile: Callable[[], object] = lambda: None

    def __call__(self) -> Loaded:
        self.loads += 1
        held = self.held.pop(0) if len(self.held) > 1 else self.held[0]
        self.meanwhile()
        if isinstance(held, BaseException):
            raise held
        return held if isinstance(held, Loaded) else Loaded(held)


@contextmanager
def unrenewed(renew: Callable[[], bool], every: timedelta) -> Iterator[None]:
    """No renewal."""
    _ = renew, every
    yield


class Scene:
    """A cache over the memory twin, on a clock that moves when somebody sleeps."""

    def __init__(self, entries: Any = None, **options: Any) -> None:
        self.clock = FakeClock()
        self.store = MemoryCache(self.clock)
        self.telemetry = Silent()
        given = {"sample": 0.0, "lifetimes": SPREADLESS, "renewal": unrenewed, **options}
        here = Surroundings(self.clock, Random(7), Counter())  # noqa: S311 - repeatable
        self.cache = Cache(self.store if entries is None else entries, here, self.telemetry, **given)

    def read(self, load: Callable[[], Loaded], **options: Any) -> str | None:
        return self.cache.read("t", "n", load, **options)

    @property
    def counts(self) -> dict[str, int]:
        assert {job_type for _, job_type in self.telemetry.counts} <= {NO_JOB_TYPE}
        return {metric.removeprefix("cache_"): number for (metric, _), number in self.telemetry.counts.items()}


class Gone:
    """A store that does not answer; or answers all but the calls that are named."""

    def __init__(self, inner: Any = None, *names: str) -> None:
        self.inner, self.names = inner, names

    def __getattr__(self, name: str) -> Any:
        def fail(*arguments: Any) -> Any:
            raise CacheUnavailable

        return fail if self.inner is None or name in self.names else getattr(self.inner, name)


class Slow:
    """Loads that wait until they may go on."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.running, self.most, self.loads = 0, 0, 0
        self.lock = threading.Lock()
        self.begun = threading.Semaphore(0)

    def __call__(self) -> Loaded:
        with self.lock:
            self.loads += 1
            self.running += 1
            self.most = max(self.most, self.running)
        self.begun.release()
        assert self.go.wait(30)
        with self.lock:
            self.running -= 1
        return Loaded("value")


def in_threads(number: int, call: Callable[[int], object]) -> tuple[list[threading.Thread], list[object]]:
    answers: list[object] = []

    def run(place: int) -> None:
        try:
            answers.append(call(place))
        except Exception as error:  # noqa: BLE001 - told as the answer
            answers.append(error)

    threads = [threading.Thread(target=run, args=(place,), daemon=True) for place in range(number)]
    for thread in threads:
        thread.start()
    return threads, answers
