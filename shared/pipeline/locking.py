"""How a delivery gets the locks of its job: a batch's in one exchange, several in one order, after a short wait if need be.

A delivery holds a part of its locks only in the order in which everybody takes them, so that nobody waits in a circle.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from shared.errors import CacheUnavailable
from shared.failpoints import Failpoint, failpoint
from shared.lease import Want

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shared.clock import Surroundings
    from shared.lease import Lease, Leases
    from shared.pipeline.run import Run

FIRST_WAIT = timedelta(milliseconds=25)
LONGEST_LOCK_WAIT = timedelta(milliseconds=250)  # between two tries


@dataclass(slots=True)
class Locks:
    """The locks of one delivery: what it wants, in order, and the leases it has, which are the first of them."""

    wants: tuple[Want, ...] = ()
    leases: list[Lease] = field(default_factory=list)

    @property
    def missing(self) -> tuple[Want, ...]:
        """What it does not have yet, in order."""
        return self.wants[len(self.leases) :]


@dataclass(frozen=True, slots=True)
class Locking:
    """Takes the locks of deliveries."""

    leases: Leases
    here: Surroundings

    def locks_of(self, run: Run) -> Locks:
        """What a delivery wants; nothing is taken yet."""
        return Locks(tuple(Want(key, self.here.tokens(), run.job.lease) for key in run.locks))

    def take_together(self, batch: Sequence[Locks]) -> None:
        """Take what can be had of all of them, in one exchange; Redis gone or a lock taken is found by `take` later."""
        wants = [want for locks in batch for want in locks.missing]
        try:
            granted = self.leases.take_all(wants)
        except CacheUnavailable:
            return  # some may be taken: their wants keep their tokens, and asking again finds them
        by_token = {want.token: lease for want, lease in zip(wants, granted, strict=True)}
        behind: list[Lease] = []
        for locks in batch:
            for want in locks.missing:
                lease = by_token[want.token]
                if lease is not None and locks.missing[0] is want:
                    locks.leases.append(lease)
                elif (
                    lease is not None
                ):  # one before it is missing: waiting for that while holding this could be a circle
                    behind.append(lease)
        if behind:
            self.leases.give_back(behind)
        if wants:
            failpoint(Failpoint.LOCKED_TOGETHER)

    def take(self, locks: Locks, patience: timedelta) -> bool:
        """Take what is missing, waiting up to `patience` in all; tell whether all are held.

        Raises:
            CacheUnavailable: Redis did not answer.
        """
        clock, random = self.here.clock, self.here.random
        ends = clock.monotonic() + patience.total_seconds()
        wait = FIRST_WAIT.total_seconds()
        while locks.missing:
            lease = self.leases.take(locks.missing[0])
            if lease is not None:
                locks.leases.append(lease)
                continue
            pause = wait * (0.5 + random.random() / 2)
            if clock.monotonic() + pause >= ends or self.here.stopping.is_set():
                return False
            clock.sleep(pause)
            wait = min(2 * wait, LONGEST_LOCK_WAIT.total_seconds())
        return True
