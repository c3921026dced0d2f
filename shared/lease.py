"""Timed ownership of a lock key. It spares double work; correctness never rests on it (the commit's conditions do).

Validity is measured on the monotonic clock from before the request was sent; a lease that could not be renewed in
time is lost, its holder is told before its next step, and it never comes back under the same token.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol, Self

from shared.errors import CacheUnavailable, LeaseLost

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from shared.clock import Clock

DRIFT_SHARE = 0.01  # of the time-to-live: clocks of two machines differ in speed by less
DRIFT = timedelta(milliseconds=2)
IDLE = 3600.0  # seconds
LAST_RENEWAL = timedelta(seconds=1)  # one request may be on its way when an invocation ends; its thread then ends, too
RENEW_SHARE = 1 / 3  # renewed at a third, so that two renewals may fail


class LeaseStore(Protocol):
    """Where leases are kept. Each call is one exchange and carries the owner's token."""

    def acquire(self, key: str, token: str, ttl: timedelta) -> bool:
        """Take the key if it is free or already this token's (a reply was lost).

        Raises:
            CacheUnavailable: no answer.
        """
        ...

    def renew(self, key: str, token: str, ttl: timedelta) -> bool:
        """Prolong, if the key is this token's.

        Raises:
            CacheUnavailable: no answer.
        """
        ...

    def finish(self, tags: Sequence[str], leases: Sequence[tuple[str, str]]) -> None:
        """Invalidate the tags and give back the leases (key, token) that are still the token's, in one exchange.

        Raises:
            CacheUnavailable: some of it may not have happened.
        """
        ...


@dataclass(slots=True)
class Lease:
    """A held lock key. Shared by the handler's thread and the renewing one."""

    key: str
    token: str
    ttl: timedelta
    valid_until: float  # monotonic seconds
    clock: Clock
    lost: threading.Event = field(default_factory=threading.Event)

    def check(self) -> None:
        """Return if the lease still holds.

        Raises:
            LeaseLost: it does not, for good.
        """
        if self.lost.is_set() or self.clock.monotonic() >= self.valid_until:
            self.lost.set()
            message = f"The lease on {self.key!r} is lost: another may work on it."
            raise LeaseLost(message)


def valid_until(sent: float, ttl: timedelta) -> float:
    """Until when a lease surely holds that was requested at `sent`, in monotonic seconds."""
    return sent + ttl.total_seconds() * (1 - DRIFT_SHARE) - DRIFT.total_seconds()


class LeaseKeeper:
    """Takes leases and renews them while healthy. Its thread lives as long as the `with` block: one invocation."""

    def __init__(self, store: LeaseStore, clock: Clock) -> None:
        """Keep leases of this store by this clock."""
        self._store = store
        self._clock = clock
        self._held: dict[str, Lease] = {}
        self._changed = threading.Condition()
        self._open = False
        self._news = False  # a lease was taken since the thread last looked

    def __enter__(self) -> Self:
        """Begin to renew."""
        self._open = True
        self._thread = threading.Thread(target=self._renew_while_open, name="lease-keeper", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop renewing; whatever is still held is lost to its holder."""
        with self._changed:
            self._open = False
            for lease in self._held.values():
                lease.lost.set()
            self._held.clear()
            self._changed.notify()
        self._thread.join(LAST_RENEWAL.total_seconds())

    def take(self, key: str, token: str, ttl: timedelta) -> Lease | None:
        """Take the lock key, or give None if another has it.

        Raises:
            CacheUnavailable: Redis did not answer.
        """
        sent = self._clock.monotonic()
        if not self._store.acquire(key, token, ttl):
            return None
        lease = Lease(key, token, ttl, valid_until(sent, ttl), self._clock)
        with self._changed:
            self._held[token] = lease
            self._news = True
            self._changed.notify()
        return lease

    def finish(self, tags: Sequence[str], leases: Sequence[Lease]) -> None:
        """Invalidate tags and give the leases back, in one exchange; nothing to do costs nothing.

        Raises:
            CacheUnavailable: some of it may not have happened; the leases end by themselves.
        """
        held = [(lease.key, lease.token) for lease in leases if self._forget(lease)]
        if tags or held:
            self._store.finish(tags, held)

    def give_back(self, leases: Sequence[Lease]) -> None:
        """Give back those that are still kept; a failure only means that they end by themselves."""
        try:
            self.finish((), leases)
        except CacheUnavailable:
            return

    def renew_due(self) -> float:
        """Renew every lease whose third has passed; give the seconds until the next is due."""
        with self._changed:
            leases = list(self._held.values())
        wait = IDLE
        for lease in leases:
            if lease.lost.is_set():  # given up, or the invocation has ended meanwhile
                continue
            wait = min(wait, self._renew(lease))
        return wait

    def _renew(self, lease: Lease) -> float:
        sent = self._clock.monotonic()
        due = lease.valid_until - lease.ttl.total_seconds() * (1 - RENEW_SHARE)
        if sent < due:
            return due - sent
        try:
            renewed = self._store.renew(lease.key, lease.token, lease.ttl)
        except CacheUnavailable:
            # Maybe next time: the lease holds until valid_until, which the holder checks by itself.
            return max(0.05, (lease.valid_until - sent) / 4)
        if not renewed or self._clock.monotonic() >= lease.valid_until:
            lease.lost.set()
            self._forget(lease)
            return IDLE
        lease.valid_until = valid_until(sent, lease.ttl)
        return lease.ttl.total_seconds() * RENEW_SHARE

    def _renew_while_open(self) -> None:
        while True:
            wait = self.renew_due()
            with self._changed:
                if self._open and not self._news:
                    self._changed.wait(wait)
                if not self._open:
                    return
                self._news = False

    def _forget(self, lease: Lease) -> bool:
        with self._changed:
            return self._held.pop(lease.token, None) is not None
