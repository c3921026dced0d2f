"""Reads of the source that go round the cache, as when Redis is gone: few at once, and equal ones shared.

What is too much is refused, so that a source that served a tenth of all reads is not broken by the rest.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future, wait
from datetime import timedelta
from typing import TYPE_CHECKING

from shared.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from shared.cache_store import Loaded

SOURCE = "cache-source"


class Source:
    """The way to the source for the threads of one process."""

    def __init__(self, *, at_once: int = 10, patience: timedelta = timedelta(seconds=2)) -> None:
        """Let so many loads run at once; whoever waits longer than `patience` for a place is refused."""
        self._places = threading.BoundedSemaphore(at_once)
        self._patience = patience.total_seconds()
        self._lock = threading.Lock()
        self._flights: dict[Hashable, Future[Loaded]] = {}

    def load(self, key: Hashable, load: Callable[[], Loaded]) -> Loaded:
        """Load, or share the load of the same key that is under way; its failure is shared, too.

        What is shared may have begun before this call, so it can be older than it by one load. Whoever needs a version
        names it in the key.

        Raises:
            Unavailable: too many loads are under way, or the shared one takes too long.
        """
        with self._lock:
            others = self._flights.get(key)
            if others is None:
                self._flights[key] = Future()
        if others is not None:
            if not wait([others], self._patience).done:
                raise _shed()
            return others.result()
        try:
            loaded = self._within_bounds(load)
        except Exception as error:
            self._land(key).set_exception(error)
            raise
        except BaseException:
            self._land(key).set_exception(_shed())  # this thread is told to end, the others are not
            raise
        self._land(key).set_result(loaded)
        return loaded

    def _land(self, key: Hashable) -> Future[Loaded]:
        """Let nobody join any more: what was loaded grows old from here."""
        with self._lock:
            return self._flights.pop(key)

    def _within_bounds(self, load: Callable[[], Loaded]) -> Loaded:
        if not self._places.acquire(timeout=self._patience):
            raise _shed()
        try:
            return load()
        finally:
            self._places.release()


def _shed() -> Unavailable:
    return Unavailable("Too many reads go round the cache at once.", dependency=SOURCE)
