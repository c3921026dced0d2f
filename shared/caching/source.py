"""Reads of the source that go round the cache, as when Redis is gone: few at once, equal ones shared, none older than asked.

What is too much is refused, so that a source that served a tenth of all reads is not broken by the rest.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future, wait
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from typing import TYPE_CHECKING

from shared.errors import ClaimLost, HandlerEnded, LeaseLost, Stopping, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from shared.caching.store import Loaded

    Flight = Future[Loaded | None]  # None: whoever led it ended without finding out

SOURCE = "cache-source"
# A job that ends while it loads: no failure of the source, and nothing to do with others who wait for the load.
ENDINGS = (HandlerEnded, LeaseLost, ClaimLost, Stopping)
_has_place: ContextVar[bool] = ContextVar("has_place", default=False)


class Source:
    """The way to the source for the threads of one process."""

    def __init__(
        self,
        *,
        at_once: int = 10,
        patience: timedelta = timedelta(seconds=2),
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Let so many loads run at once; whoever waits longer than `patience` for one to begin, or to end, is refused."""
        self._places = threading.BoundedSemaphore(at_once)
        self._patience = patience
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._gathering: dict[Hashable, Flight] = {}  # not begun: whoever comes may share it
        self._running: dict[Hashable, Flight] = {}

    def load(self, key: Hashable, load: Callable[[], Loaded], *, patience: timedelta | None = None) -> Loaded:
        """Load, or share the next load of the same key; its failure is shared, too.

        A load that is under way may have read what was there before this call, and before an invalidation that was
        answered since: it is waited for, and not shared. Those who wait share the load after it.

        Args:
            key: what is loaded. Whoever needs a version names it there.
            load: reads the source, with a timeout of its own.
            patience: how long this caller may wait for others, if that is less than the source's patience.

        Raises:
            Unavailable: too many loads are under way, or the shared one takes too long.
        """
        most = self._patience if patience is None else min(patience, self._patience)
        until = self._monotonic() + most.total_seconds()
        while True:
            with self._lock:
                others = self._gathering.get(key)
                if others is None:
                    mine: Flight = Future()
                    self._gathering[key] = mine
                    before = self._running.get(key)
            if others is None:
                return self._led(key, mine, before, load, until)
            self._await(others, until)
            if (loaded := others.result()) is not None:
                return loaded

    def _led(
        self, key: Hashable, mine: Flight, before: Flight | None, load: Callable[[], Loaded], until: float
    ) -> Loaded:
        try:
            if before is not None:
                self._await(before, until)
            with self._place(until):
                with self._lock:
                    self._running[key] = self._gathering.pop(key)
                loaded = load()
        except BaseException as error:
            self._land(key, mine)
            tells_of_the_source = isinstance(error, Exception) and not isinstance(error, ENDINGS) and not is_shed(error)
            if tells_of_the_source:
                mine.set_exception(error)
            else:
                mine.set_result(None)
            raise
        self._land(key, mine)
        mine.set_result(loaded)
        return loaded

    def _land(self, key: Hashable, flight: Flight) -> None:
        with self._lock:
            for flights in (self._gathering, self._running):
                if flights.get(key) is flight:
                    del flights[key]

    def _await(self, flight: Flight, until: float) -> None:
        if not wait([flight], self._left(until)).done:
            raise _shed()

    @contextmanager
    def _place(self, until: float) -> Iterator[None]:
        """One of the places. What a load reads in turn shares its place: waiting for a second, all would wait for all."""
        if _has_place.get():
            yield
            return
        if not self._places.acquire(timeout=self._left(until)):
            raise _shed()
        before = _has_place.set(True)
        try:
            yield
        finally:
            _has_place.reset(before)
            self._places.release()

    def _left(self, until: float) -> float:
        return max(0.0, until - self._monotonic())


def is_shed(error: BaseException) -> bool:
    """Whether it says that too many read the source."""
    return isinstance(error, Unavailable) and error.dependency == SOURCE


def _shed() -> Unavailable:
    return Unavailable("Too many reads go round the cache at once.", dependency=SOURCE)
