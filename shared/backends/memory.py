"""The twins of Valkey, SQS and HTTP dependencies, in memory: for fast tests and for the simulator.

They pass the same conformance suite as the real ones.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from shared.cache import Hit, Miss
from shared.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from shared.clock import Clock
    from shared.delivery import Delivery
    from shared.dependency import Dependency, Reply
    from shared.producer import Outgoing


@dataclass(slots=True)
class MemoryCache:
    """Leases and cache entries; time-to-live by the clock given."""

    clock: Clock
    leases: dict[str, tuple[str, float]] = field(default_factory=dict)
    entries: dict[str, tuple[float, dict[str, str]]] = field(default_factory=dict)
    refills: dict[str, dict[str, str]] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def acquire(self, key: str, token: str, ttl: timedelta) -> bool:
        """Take the key if it is free or already this token's."""
        with self._lock:
            if self._owner(key) not in {None, token}:
                return False
            self.leases[key] = (token, self.clock.monotonic() + ttl.total_seconds())
            return True

    def renew(self, key: str, token: str, ttl: timedelta) -> bool:
        """Prolong, if the key is this token's."""
        with self._lock:
            if self._owner(key) != token:
                return False
            self.leases[key] = (token, self.clock.monotonic() + ttl.total_seconds())
            return True

    def finish(self, tags: Sequence[str], leases: Sequence[tuple[str, str]]) -> None:
        """Invalidate tags and give back leases."""
        with self._lock:
            for tag in tags:
                self.entries.pop(tag, None)
                self.refills.pop(tag, None)
            for key, token in leases:
                if self._owner(key) == token:
                    del self.leases[key]

    def fetch(self, tag: str, name: str, refill: str, ttl: timedelta) -> Hit | Miss:
        """Give the entry, or leave the refill token."""
        with self._lock:
            until, names = self.entries.get(tag, (0.0, {}))
            if until <= self.clock.monotonic():
                self.entries.pop(tag, None)
                self.refills.pop(tag, None)
            elif name in names:
                return Hit(names[name])
            self.refills.setdefault(tag, {})[name] = refill
            self.entries.setdefault(tag, (self.clock.monotonic() + ttl.total_seconds(), {}))
            return Miss(refill)

    def store(self, tag: str, name: str, refill: str, value: str, ttl: timedelta) -> bool:
        """Store the entry if its token was not revoked."""
        with self._lock:
            if self.entries.get(tag, (0.0, {}))[0] <= self.clock.monotonic():
                self.finish([tag], [])
            if self.refills.get(tag, {}).get(name) != refill:
                return False
            del self.refills[tag][name]
            until, names = self.entries.get(tag, (self.clock.monotonic() + ttl.total_seconds(), {}))
            self.entries[tag] = (until, {**names, name: value})
            return True

    def _owner(self, key: str) -> str | None:
        token, until = self.leases.get(key, (None, 0.0))
        return token if until > self.clock.monotonic() else None


@dataclass(slots=True)
class MemoryQueue:
    """A queue that keeps what was sent, hidden and dead-lettered."""

    sent: list[Outgoing] = field(default_factory=list)
    hidden: dict[str, timedelta] = field(default_factory=dict)
    dead: deque[tuple[Delivery, str]] = field(default_factory=deque)

    def send(self, batch: Sequence[Outgoing]) -> Sequence[str]:
        """Take all."""
        self.sent.extend(batch)
        return [f"sent-{len(self.sent) - len(batch) + place}" for place in range(len(batch))]

    def hide(self, delivery: Delivery, after: timedelta) -> None:
        """Note the wait."""
        self.hidden[delivery.message_id] = after

    def dead_letter(self, delivery: Delivery, reason: str) -> None:
        """Keep the dead letter."""
        self.dead.append((delivery, reason))


@dataclass(slots=True)
class MemoryTransport:
    """A dependency that answers by a function; without one it cannot be reached."""

    answer: Callable[[str, str, object, object], Reply] | None = None

    def send(  # noqa: PLR0913 - one request
        self,
        dependency: Dependency,
        method: str,
        path: str,
        *,
        body: object,
        headers: object,
        within: timedelta,
    ) -> Reply:
        """Give the function's answer."""
        if self.answer is None or within <= timedelta(0):
            message = f"{dependency.name} cannot be reached."
            raise Unavailable(message, dependency=dependency.name)
        return self.answer(method, path, body, headers)
