"""Reading through a cache that decides nothing and may be lost at any moment: who loads, who waits, who gets an old value.

One caller of all machines loads what is missing, the others wait for it; one refreshes what is past its soft time, the
others get the old value. What a load may store, the store decides (see shared/cache_store.py). With Redis gone, reads
go to the source, few at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, assert_never

from shared.cache_lives import Lifetimes
from shared.cache_renewal import RENEW_SHARE, in_a_thread
from shared.cache_source import SOURCE, Source
from shared.cache_store import Busy, Hit, Miss, Stale
from shared.errors import CacheUnavailable, HandlerEnded, LeaseLost, Stopping, Unavailable
from shared.failpoints import Failpoint, failpoint
from shared.tag import Tag
from shared.telemetry import NO_JOB_TYPE

if TYPE_CHECKING:
    from collections.abc import Callable

    from shared.cache_renewal import Renewal
    from shared.cache_store import CacheStore, Loaded
    from shared.clock import Surroundings
    from shared.tag import Version
    from shared.telemetry import Telemetry

FIRST_WAIT = timedelta(milliseconds=20)
LONGEST_WAIT = timedelta(milliseconds=250)
GROWTH = 1.5
# Between a commit and its invalidation the cache differs from the source, and rightly so; it takes milliseconds.
SETTLING = timedelta(milliseconds=200)
ENDINGS = (HandlerEnded, LeaseLost, Stopping)  # a job that ends while it loads: no failure of the source


@dataclass(frozen=True, slots=True)
class Cache:
    """Reads through to the source.

    Attributes:
        entries: the store.
        here: clock, chance and tokens.
        telemetry: where hits, misses and the like are counted.
        lifetimes: how long entries live.
        lease: how long a load holds others back without a sign of life; renewed while it runs.
        patience: how long a caller waits for another's load before it goes to the source itself.
        sample: share of hits that are compared with the source; 0 where a value may rightly differ from it.
        source: bounds what goes round the cache. One for a process.
        renewal: how leases are renewed.
    """

    entries: CacheStore
    here: Surroundings
    telemetry: Telemetry
    lifetimes: Lifetimes = field(default_factory=Lifetimes)
    lease: timedelta = timedelta(seconds=10)
    patience: timedelta = timedelta(seconds=10)
    sample: float = 0.01
    source: Source = field(default_factory=Source)
    renewal: Renewal = in_a_thread

    def read(self, tag: str, name: str, load: Callable[[], Loaded], *, at_least: Version | None = None) -> str | None:
        """Give the value, from the cache or else from `load`; None is an absence.

        Args:
            tag: what an invalidation drops.
            name: tells the entries of a tag apart. Tag or name holds the owner of what only its owner may see.
            load: reads the source, with a timeout of its own.
            at_least: a version the caller knows of: anything lower in the cache is missing.

        Raises:
            Refused: the tag is empty; or what was loaded is no Unicode text.
            Unavailable: the cache is gone, and too many read the source already.
            Exception: whatever `load` raises, if nothing that is kept may be given instead.
        """
        return _Reading(self, Tag(tag).name, name, load, at_least, self.here.tokens()).value()

    def count(self, metric: str) -> None:
        """Add one."""
        self.telemetry.count(metric, NO_JOB_TYPE)


@dataclass(frozen=True, slots=True)
class _Reading:
    """One read. Its token is the refill lease's, however often it looks."""

    cache: Cache
    tag: str
    name: str
    load: Callable[[], Loaded]
    at_least: Version | None
    token: str

    def value(self) -> str | None:
        """Look, and look again while another loads."""
        cache, clock = self.cache, self.cache.here.clock
        until = clock.monotonic() + cache.patience.total_seconds()
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
                    return self._compared(entry) if cache.here.random.random() < cache.sample else entry.value
                case Stale(entry=entry, left=left):
                    return self._refreshed(entry, left)
                case Miss():
                    cache.count("cache_miss")
                    return self._filled()
                case Busy():
                    if not pause:
                        cache.count("cache_waited")
                    if clock.monotonic() >= until:
                        return self._from_source()
                    pause = min(pause * GROWTH, LONGEST_WAIT) or FIRST_WAIT
                    wait = pause.total_seconds() * (0.5 + cache.here.random.random() / 2)
                    clock.sleep(min(wait, until - clock.monotonic()))
                case other:
                    assert_never(other)

    def _filled(self) -> str | None:
        """Load what is missing; a load that fails gives the lease back, so that the next caller tries, one at a time."""
        try:
            return self._loaded()
        except Exception:
            self.cache.count("cache_load_failed")
            self._abandon()
            raise

    def _refreshed(self, entry: Loaded, left: timedelta) -> str | None:
        """Load in the caller's own time (Lambda freezes what runs behind it), or give the old value for `left`.

        A lease whose load failed is left to run out: until then nobody else asks a source that is failing.
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
        cache.count("cache_stale_served")
        return entry.value

    def _loaded(self) -> str | None:
        """Load and store. What may not be stored is good enough for this caller, whose read began before."""
        cache = self.cache
        with cache.renewal(self._renewed, cache.lease * RENEW_SHARE):
            loaded = self.load()
        failpoint(Failpoint.CACHE_LOADED)
        lives = cache.lifetimes.of(loaded, cache.here.random)
        try:
            kept = cache.entries.store(self.tag, self.name, self.token, loaded, lives)
        except CacheUnavailable:
            return loaded.value
        failpoint(Failpoint.CACHE_STORED)
        cache.count("cache_rebuilt" if kept else "cache_refused")
        return loaded.value

    def _renewed(self) -> bool:
        return self.cache.entries.prolong(self.tag, self.name, self.token, self.cache.lease)

    def _abandon(self) -> None:
        try:
            self.cache.entries.abandon(self.tag, self.name, self.token)
        except CacheUnavailable:
            return  # the lease ends by itself

    def _from_source(self) -> str | None:
        """Read the source and store nothing."""
        self.cache.count("cache_bypassed")
        try:
            return self.cache.source.load((self.tag, self.name, self.at_least), self.load).value
        except Unavailable as error:
            if error.dependency == SOURCE:
                self.cache.count("cache_shed")
            raise

    def _compared(self, entry: Loaded) -> str | None:
        """Compare a hit with the source. What explains itself (the entry is gone by now, or newer) is no mismatch."""
        try:
            loaded = self.load()
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
