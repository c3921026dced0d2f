"""Reading through a cache that decides nothing and may be lost at any moment: what its users call, and its settings."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from shared.caching.lives import Lifetimes
from shared.caching.reading import Reading
from shared.caching.renewal import in_a_thread
from shared.caching.source import Source
from shared.tag import Tag
from shared.telemetry import NO_JOB_TYPE

if TYPE_CHECKING:
    from collections.abc import Callable

    from shared.caching.renewal import Renewal
    from shared.caching.store import CacheStore, Loaded
    from shared.clock import Surroundings
    from shared.tag import Version
    from shared.telemetry import Telemetry


@dataclass(frozen=True, slots=True)
class Cache:
    """Reads through to the source.

    Attributes:
        entries: the store.
        here: clock, chance and tokens.
        telemetry: where hits, misses and the like are counted.
        lifetimes: how long entries live.
        lease: how long a load holds others back without a sign of life; renewed while it runs. Short, since a caller
            may be gone when a server that hung takes its request up.
        rest: how long a source is spared whose refresh has failed while there is an old value to give.
        patience: how long a caller waits for another's load before it goes to the source itself.
        sample: share of hits that are compared with the source; 0 where a value may rightly differ from it.
        source: bounds what goes round the cache. One for a process.
        renewal: how leases are renewed.
    """

    entries: CacheStore
    here: Surroundings
    telemetry: Telemetry
    lifetimes: Lifetimes = field(default_factory=Lifetimes)
    lease: timedelta = timedelta(seconds=3)
    rest: timedelta = timedelta(seconds=10)
    patience: timedelta = timedelta(seconds=10)
    sample: float = 0.01
    source: Source = field(default_factory=Source)
    renewal: Renewal = in_a_thread

    def read(
        self,
        tag: str,
        name: str,
        load: Callable[[], Loaded],
        *,
        at_least: Version | None = None,
        within: timedelta | None = None,
    ) -> str | None:
        """Give the value, from the cache or else from `load`; None is an absence.

        Args:
            tag: what an invalidation drops.
            name: tells the entries of a tag apart. Tag or name holds the owner of what only its owner may see.
            load: reads the source, with a timeout of its own.
            at_least: a version the caller knows of: anything lower in the cache is missing.
            within: how long the caller may wait for others (its own load comes on top), if that is less than its patience.

        Raises:
            Refused: the tag is empty; or what was loaded is no Unicode text.
            DeclarationError: `load` reads, through this cache, the entry that it is to fill.
            Unavailable: the cache is gone, and too many read the source already.
            Exception: whatever `load` raises, if nothing that is kept may be given instead.
        """
        ends = None if within is None else self.here.clock.monotonic() + within.total_seconds()
        return Reading(self, Tag(tag).name, name, load, at_least, ends, self.here.tokens()).value()

    def put(self, tag: str, name: str, entry: Loaded) -> bool:
        """Move a versioned entry forward, as a job does that carries the version it was sent for; tell whether it is kept.

        What is older than the entry that is kept changes nothing. Where none is kept, nothing is: the next reader loads.

        Raises:
            Refused: the tag is empty, or the entry has no version.
            CacheUnavailable: nobody knows whether it was done; it may be repeated.
        """
        kept = self.entries.put(Tag(tag).name, name, entry, self.lifetimes.of(entry, self.here.random))
        self.count("cache_put" if kept else "cache_put_refused")
        return kept

    def count(self, metric: str) -> None:
        """Add one."""
        self.telemetry.count(metric, NO_JOB_TYPE)
