"""One read through the cache: it looks, loads or waits, stores, and compares now and then.

One caller of all machines loads what is missing, the others wait for it; one refreshes what is past its soft time, the
others get the old value. What a load may store, the store decides (see shared/caching/store.py). With Redis gone, reads
go to the source, few at once.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, assert_never

from shared.caching.renewal import RENEW_SHARE
from shared.caching.source import ENDINGS, is_shed
from shared.caching.store import Busy, Hit, Miss, Stale
from shared.errors import CacheUnavailable, DeclarationError, Unavailable
from shared.failpoints import Failpoint, failpoint

if TYPE_CHECKING:
    from collections.abc import Callable

    from shared.cache import Cache
    from shared.caching.store import Loaded
    from shared.tag import Version

FIRST_WAIT = timedelta(milliseconds=20)
LONGEST_PAUSE = timedelta(milliseconds=250)
GROWTH = 1.5
# Between a commit and its invalidation the cache differs from the source, and rightly so; it takes milliseconds.
SETTLING = timedelta(milliseconds=200)
# What the loads around this one are to fill: a load that reads its own entry would wait for itself.
_loading: ContextVar[tuple[tuple[object, str, str], ...]] = ContextVar("loading", default=())


@dataclass(slots=True, eq=False)
class Reading:
    """One read. Its token is the refill lease's, however often it looks. `ends`: by the monotonic clock, as far as it may wait."""

    cache: Cache
    tag: str
    name: str
    load: Callable[[], Loaded]
    at_least: Version | None
    ends: float | None
    token: str

    def value(self) -> str | None:
        """Look, and look again while another loads."""
        cache, clock = self.cache, self.cache.here.clock
        until = clock.monotonic() + cache.patience.total_seconds()
        until = until if self.ends is None else min(until, self.ends)
        pause = timedelta(0)
        while True:
            try:
                found = cache.entries.fetch(self.tag, self.name, self.token, cache.lease, self.at_least)
            except CacheUnavailable:
                return self._from_source()
            failpoint(Failpoint.CACHE_FETCHED)
            match found:
                case Hit(entry=entry, refreshing=True):
                    cache.count("cache_stale_served")
                    return entry.value
                case Hit(entry=entry):
                    cache.count("cache_hit")
                    return self._compared(entry) if self._is_sampled() else entry.value
                case Stale(entry=entry, left=left):
                    return self._refreshed(entry, left)
                case Miss():
                    cache.count("cache_miss")
                    return self._filled()
                case Busy():
                    if not pause:
                        self._refuse_own()
                        cache.count("cache_waited")
                    time = until - clock.monotonic()  # looked at once: it goes on
                    if time <= 0:
                        return self._from_source()
                    pause = min(pause * GROWTH, LONGEST_PAUSE) or FIRST_WAIT
                    wait = pause.total_seconds() * (0.5 + cache.here.random.random() / 2)
                    clock.sleep(min(wait, time))
                case other:
                    assert_never(other)

    def _is_sampled(self) -> bool:
        return self.cache.sample > 0 and self.cache.here.random.random() < self.cache.sample

    def _filled(self) -> str | None:
        """Load what is missing; a load that fails gives the lease back, so that the next caller tries, one at a time."""
        try:
            return self._loaded()
        except Exception as error:
            if not isinstance(error, ENDINGS):
                self.cache.count("cache_load_failed")
            self._abandon()
            raise

    def _refreshed(self, entry: Loaded, left: timedelta) -> str | None:
        """Load in the caller's own time (Lambda freezes what runs behind it), or give the old value for `left`.

        A lease whose load failed is kept for a rest: until then nobody else asks a source that is failing.
        """
        cache, clock = self.cache, self.cache.here.clock
        until = clock.monotonic() + left.total_seconds()
        try:
            return self._loaded()
        except ENDINGS:
            self._abandon()
            raise
        except Exception:
            cache.count("cache_load_failed")
            if clock.monotonic() >= until:
                raise
            self._rest()
        cache.count("cache_stale_served")
        return entry.value

    def _loaded(self) -> str | None:
        """Load and store. What may not be stored is good enough for this caller, whose read began before."""
        cache = self.cache
        with cache.renewal(self._renewed, cache.lease * RENEW_SHARE):
            loaded = self._load()
        failpoint(Failpoint.CACHE_LOADED)
        lives = cache.lifetimes.of(loaded, cache.here.random)
        try:
            kept = cache.entries.store(self.tag, self.name, self.token, loaded, lives)
        except CacheUnavailable:
            return loaded.value
        failpoint(Failpoint.CACHE_STORED)
        cache.count("cache_rebuilt" if kept else "cache_refused")
        return loaded.value

    def _load(self) -> Loaded:
        outer = _loading.set((*_loading.get(), (self.cache.entries, self.tag, self.name)))
        try:
            return self.load()
        finally:
            _loading.reset(outer)

    def _renewed(self) -> bool:
        return self.cache.entries.prolong(self.tag, self.name, self.token, self.cache.lease)

    def _rest(self) -> None:
        try:
            self.cache.entries.prolong(self.tag, self.name, self.token, self.cache.rest)
        except CacheUnavailable:
            return  # the source is asked again a little earlier

    def _abandon(self) -> None:
        try:
            self.cache.entries.abandon(self.tag, self.name, self.token)
        except CacheUnavailable:
            return  # the lease ends by itself

    def _from_source(self) -> str | None:
        """Read the source and store nothing."""
        cache = self.cache
        self._refuse_own()
        cache.count("cache_bypassed")
        left = None if self.ends is None else timedelta(seconds=self.ends - cache.here.clock.monotonic())
        try:
            return cache.source.load((self.tag, self.name, self.at_least), self._load, patience=left).value
        except Unavailable as error:
            if is_shed(error):
                cache.count("cache_shed")
            raise

    def _refuse_own(self) -> None:
        if any(entries is self.cache.entries and names == [self.tag, self.name] for entries, *names in _loading.get()):
            message = "A load reads the entry that it is to fill, and would wait for itself: let it read the source."
            raise DeclarationError(message)

    def _compared(self, entry: Loaded) -> str | None:
        """Compare a hit with the source, if nobody has to wait for it.

        What explains itself (the entry is gone by now, or newer) is no mismatch.
        """
        key = ("compared", self.tag, self.name)
        try:
            loaded = self.cache.source.load(key, self._load, patience=timedelta(0))
        except ENDINGS:
            raise
        except Exception:  # noqa: BLE001 - a comparison fails no read that the cache could serve
            return entry.value
        lags = entry.version is not None and loaded.version is not None and loaded.version < entry.version
        if lags or loaded.value == entry.value:
            return entry.value
        self.cache.here.clock.sleep(SETTLING.total_seconds())
        try:
            if self._is_kept(entry):
                self.cache.count("cache_mismatch")
                self.cache.entries.discard(self.tag, self.name)
        except CacheUnavailable:
            return loaded.value
        return loaded.value

    def _is_kept(self, entry: Loaded) -> bool:
        found = self.cache.entries.fetch(self.tag, self.name, self.token, self.cache.lease, self.at_least)
        if isinstance(found, Stale | Miss):
            self._abandon()  # looking has taken the lease
        return isinstance(found, Hit | Stale) and found.entry == entry
