"""Timed ownership of a lock key. It spares double work; correctness never rests on it (the commit's conditions do).

Validity is measured on the monotonic clock from before the request was sent, and on the wall clock as well, since a
frozen machine's monotonic clock may stand still. A lease that could not be renewed in time is lost, its holder is told
before its next step, and it never comes back under the same token.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

from shared.errors import CacheUnavailable, LeaseLost
from shared.pipeline.keeper import IDLE

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from shared.clock import Clock
    from shared.pipeline.keeper import Keeper
    from shared.tag import Tag

DRIFT_SHARE = 0.01  # of the time-to-live: clocks of two machines differ in speed by less
DRIFT = timedelta(milliseconds=2)
RENEW_SHARE = 1 / 3  # renewed at a third, so that two renewals may fail
SHORTEST_RENEWAL_WAIT = 0.05  # seconds


@dataclass(frozen=True, slots=True)
class Want:
    """A wish for a lock key. It keeps its token however often it is asked, so that a lost reply locks nobody out."""

    key: str
    token: str
    ttl: timedelta


class LeaseStore(Protocol):
    """Where leases are kept. Each call is one exchange and carries the owner's token."""

    def acquire_all(self, wants: Sequence[Want]) -> Sequence[bool]:
        """Take each key that is free or already its token's (a reply was lost); one may be granted and the next refused.

        Raises:
            CacheUnavailable: no answer; any of them may be taken.
        """
        ...

    def renew(self, key: str, token: str, ttl: timedelta) -> bool:
        """Prolong, if the key is this token's.

        Raises:
            CacheUnavailable: no answer.
        """
        ...

    def finish(self, tags: Sequence[Tag], leases: Sequence[tuple[str, str]]) -> None:
        """Invalidate the tags and give back the leases (key, token) that are still the token's, in one exchange.

        Raises:
            CacheUnavailable: some of it may not have happened.
        """
        ...


@dataclass(slots=True, eq=False)
class Lease:
    """A held lock key. Shared by the handler's thread and the renewing one."""

    want: Want
    store: LeaseStore
    clock: Clock
    valid_until: float  # monotonic seconds
    ends: datetime  # the same by the wall clock
    since: float  # monotonic seconds
    lost: threading.Event = field(default_factory=threading.Event)

    def check(self) -> None:
        """Return if the lease still holds.

        Raises:
            LeaseLost: it does not, for good.
        """
        if self.lost.is_set() or self._is_over():
            self.lost.set()
            message = f"The lease on {self.want.key!r} is lost: another may work on it."
            raise LeaseLost(message)

    def age(self) -> timedelta:
        """How long ago it was taken."""
        return timedelta(seconds=self.clock.monotonic() - self.since)

    def due_in(self) -> float:
        """Seconds until a third of its time has passed."""
        due = self.valid_until - self.want.ttl.total_seconds() * (1 - RENEW_SHARE)
        return due - self.clock.monotonic()

    def renew(self) -> float:
        """Renew once a third of its time has passed; give the seconds until it is due again."""
        ttl = self.want.ttl
        sent, sent_at = self.clock.monotonic(), self.clock.now()
        if (left := self.due_in()) > 0:
            return left
        try:
            renewed = self.store.renew(self.want.key, self.want.token, ttl)
        except CacheUnavailable:
            # Maybe next time: the lease holds until valid_until, which the holder checks by itself.
            return max(SHORTEST_RENEWAL_WAIT, (self.valid_until - sent) / 4)
        if not renewed or self._is_over():
            self.lost.set()
            return IDLE
        self.valid_until, self.ends = valid_until(sent, ttl), sent_at + ttl
        return ttl.total_seconds() * RENEW_SHARE

    def _is_over(self) -> bool:
        return self.clock.monotonic() >= self.valid_until or self.clock.now() >= self.ends


def valid_until(sent: float, ttl: timedelta) -> float:
    """Until when a lease surely holds that was requested at `sent`, in monotonic seconds."""
    return sent + ttl.total_seconds() * (1 - DRIFT_SHARE) - DRIFT.total_seconds()


@dataclass(frozen=True, slots=True)
class Leases:
    """Takes leases, has them renewed while they are held, and gives them back."""

    store: LeaseStore
    keeper: Keeper
    clock: Clock

    def take(self, want: Want) -> Lease | None:
        """Take the lock key, or give None if another has it.

        Raises:
            CacheUnavailable: Redis did not answer.
        """
        (lease,) = self.take_all((want,))
        return lease

    def take_all(self, wants: Sequence[Want]) -> list[Lease | None]:
        """Take many in one exchange; None for each that another has. Nothing wanted costs nothing.

        Raises:
            CacheUnavailable: Redis did not answer; asking again with the same wants is safe.
        """
        if not wants:
            return []
        sent, sent_at = self.clock.monotonic(), self.clock.now()
        granted = self.store.acquire_all(wants)
        return [self._held(want, sent, sent_at) if taken else None for want, taken in zip(wants, granted, strict=True)]

    def finish(self, tags: Sequence[Tag], leases: Sequence[Lease]) -> None:
        """Invalidate tags and give the leases back, in one exchange; nothing to do costs nothing.

        Raises:
            CacheUnavailable: some of it may not have happened; the leases end by themselves.
        """
        self.tell(tags, self.forgotten(leases))

    def forgotten(self, leases: Sequence[Lease]) -> list[tuple[str, str]]:
        """Renew them no more; give key and token of those that are still to be given back."""
        return [(lease.want.key, lease.want.token) for lease in leases if self.keeper.forget(lease)]

    def tell(self, tags: Sequence[Tag], held: Sequence[tuple[str, str]]) -> None:
        """Invalidate tags and give back what is held by key and token; as `finish`."""
        if tags or held:
            self.store.finish(tags, held)

    def drop(self, tags: Sequence[Tag]) -> None:
        """Invalidate tags while the leases are held.

        Raises:
            CacheUnavailable: some of it may not have happened.
        """
        self.finish(tags, ())

    def give_back(self, leases: Sequence[Lease]) -> None:
        """Give back those that are still kept; a failure only means that they end by themselves."""
        try:
            self.finish((), leases)
        except CacheUnavailable:
            return

    def _held(self, want: Want, sent: float, sent_at: datetime) -> Lease:
        lease = Lease(want, self.store, self.clock, valid_until(sent, want.ttl), sent_at + want.ttl, sent)
        self.keeper.keep(lease)
        return lease
