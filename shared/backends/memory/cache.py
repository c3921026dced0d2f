"""The twin of Valkey in memory: leases and cache entries, with the same answers as the scripts give, by the clock given."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from shared.caching.store import AFTERLIFE, Busy, Found, Hit, Loaded, Miss, Stale
from shared.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shared.caching.lives import Lives
    from shared.clock import Clock
    from shared.lease import Want
    from shared.tag import Tag, Version


@dataclass(frozen=True, slots=True)
class _Kept:
    entry: Loaded
    soft: float
    hard: float
    token: str = ""


@dataclass(slots=True)
class _Tagged:
    """What hangs on a tag; times are monotonic seconds."""

    entries: dict[str, _Kept] = field(default_factory=dict)
    refills: dict[str, tuple[str, float]] = field(default_factory=dict)
    newest: Version | None = None
    floor: Version | None = None
    floor_ends: float = 0.0
    ends: float = 0.0


@dataclass(slots=True)
class MemoryCache:
    """Leases and cache entries; time-to-live by the clock given."""

    clock: Clock
    leases: dict[str, tuple[str, float]] = field(default_factory=dict)
    tags: dict[str, _Tagged] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def forget(self) -> None:
        """Lose everything, as a server does that comes back empty."""
        with self._lock:
            self.leases.clear()
            self.tags.clear()

    def acquire_all(self, wants: Sequence[Want]) -> list[bool]:
        """Take each key if it is free or already its token's."""
        with self._lock:
            return [self._acquired(want) for want in wants]

    def _acquired(self, want: Want) -> bool:
        if self._owner(want.key) not in {None, want.token}:
            return False
        self.leases[want.key] = (want.token, self._after(want.ttl))
        return True

    def renew(self, key: str, token: str, ttl: timedelta) -> bool:
        """Prolong, if the key is this token's."""
        with self._lock:
            if self._owner(key) != token:
                return False
            self.leases[key] = (token, self._after(ttl))
            return True

    def finish(self, tags: Sequence[Tag], leases: Sequence[tuple[str, str]]) -> None:
        """Invalidate tags and give back leases."""
        with self._lock:
            for tag in tags:
                self._drop(tag)
            for key, token in leases:
                if self._owner(key) == token:
                    del self.leases[key]

    def fetch(self, tag: str, name: str, token: str, lease: timedelta, at_least: Version | None) -> Found:
        """Give the entry, or the refill lease, or tell who is before."""
        with self._lock:
            tagged, now = self._tagged(tag), self.clock.monotonic()
            kept = self._kept(tagged, name)
            if kept is not None and at_least is not None and _older(kept.entry.version, at_least):
                kept = None
            if kept is not None and now < kept.soft:
                return Hit(kept.entry)
            holder, till = tagged.refills.get(name, (token, 0.0))
            if holder != token and now < till:
                return Busy() if kept is None else Hit(kept.entry, refreshing=True)
            self._lend(tagged, name, token, lease)
            return Miss() if kept is None else Stale(kept.entry, timedelta(seconds=kept.hard - now))

    def store(self, tag: str, name: str, token: str, entry: Loaded, lives: Lives) -> bool:
        """Keep what was loaded, if its token is still there and nothing newer is known."""
        with self._lock:
            tagged = self._tagged(tag)
            kept = self._kept(tagged, name)
            if self._refill(tagged, name) != token:
                return kept is not None and kept.token == token
            del tagged.refills[name]
            known = [self._floor(tagged), None if kept is None else kept.entry.version]
            version = entry.version
            if version is not None and any(other is not None and version < other for other in known):
                return False
            return self._keep(tagged, name, entry, lives, token)

    def prolong(self, tag: str, name: str, token: str, lease: timedelta) -> bool:
        """Renew the refill lease."""
        with self._lock:
            tagged = self._tagged(tag)
            if self._refill(tagged, name) != token:
                return False
            self._lend(tagged, name, token, lease)
            return True

    def abandon(self, tag: str, name: str, token: str) -> None:
        """Give the refill lease back."""
        with self._lock:
            tagged = self._tagged(tag)
            if self._refill(tagged, name) == token:
                del tagged.refills[name]

    def put(self, tag: str, name: str, entry: Loaded, lives: Lives) -> bool:
        """Move a versioned entry forward."""
        if entry.version is None:
            message = "Only an entry with a version can be put: without one nobody can tell old from new."
            raise Refused(message)
        with self._lock:
            tagged = self._tagged(tag)
            kept = self._kept(tagged, name)
            if kept is None or kept.entry.version is None:
                self.discard(tag, name)
                return False
            if entry.version < kept.entry.version:
                return False
            return self._keep(tagged, name, entry, lives)

    def discard(self, tag: str, name: str) -> None:
        """Forget the entry and revoke its refill token."""
        with self._lock:
            tagged = self._tagged(tag)
            tagged.entries.pop(name, None)
            tagged.refills.pop(name, None)

    def _drop(self, tag: Tag) -> None:
        tagged = self._tagged(tag.name)
        floors = [floor for floor in (self._floor(tagged), tag.floor, tagged.newest) if floor is not None]
        ends, fresh = self._after(AFTERLIFE), tag.fresh
        before = None if fresh is None else self._kept(tagged, fresh.name)
        self.tags[tag.name] = tagged = _Tagged(floor=max(floors, default=None), floor_ends=ends, ends=ends)
        is_newest = fresh is not None and fresh.entry.version == tagged.floor
        if fresh is not None and is_newest and before is not None and before.entry.version is not None:
            self._keep(tagged, fresh.name, fresh.entry, fresh.lives)

    def _keep(self, tagged: _Tagged, name: str, entry: Loaded, lives: Lives, token: str = "") -> bool:
        tagged.refills.pop(name, None)
        tagged.entries[name] = _Kept(entry, self._after(lives.soft), self._after(lives.hard), token)
        tagged.ends = max(tagged.ends, self._after(lives.hard))
        if entry.version is not None and _older(tagged.newest, entry.version):
            tagged.newest = entry.version
        return True

    def _lend(self, tagged: _Tagged, name: str, token: str, lease: timedelta) -> None:
        tagged.refills[name] = (token, self._after(lease))
        tagged.ends = max(tagged.ends, self._after(lease + AFTERLIFE))

    def _tagged(self, tag: str) -> _Tagged:
        tagged = self.tags.get(tag)
        if tagged is None or tagged.ends <= self.clock.monotonic():
            tagged = self.tags[tag] = _Tagged()
        return tagged

    def _kept(self, tagged: _Tagged, name: str) -> _Kept | None:
        kept = tagged.entries.get(name)
        return kept if kept is not None and self.clock.monotonic() < kept.hard else None

    def _refill(self, tagged: _Tagged, name: str) -> str | None:
        token, till = tagged.refills.get(name, (None, 0.0))
        return token if self.clock.monotonic() < till + AFTERLIFE.total_seconds() else None

    def _floor(self, tagged: _Tagged) -> Version | None:
        return tagged.floor if self.clock.monotonic() < tagged.floor_ends else None

    def _after(self, time: timedelta) -> float:
        return self.clock.monotonic() + time.total_seconds()

    def _owner(self, key: str) -> str | None:
        token, until = self.leases.get(key, (None, 0.0))
        return token if until > self.clock.monotonic() else None


def _older(version: Version | None, other: Version) -> bool:
    return version is None or version < other
