"""What people change about job records: make a dead letter's job ready to run again, end it, give it back.

Every change names what was seen of the record. Whoever loses against a worker, or against another operator, changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from shared.job_record import JobView, Status

TOGETHER = 50  # jobs that are made ready in one write
FAILURES_KEPT = 10  # of the lives before a replay


@dataclass(frozen=True, slots=True)
class Reopening:
    """A job to make ready to run again.

    Attributes:
        seen: its record as it was read.
        death: by which the copy of its message will be known.
        by: who does it.
    """

    seen: JobView
    death: int
    by: str


@dataclass(frozen=True, slots=True)
class Ending:
    """How people end a job.

    Attributes:
        status: failed or cancelled.
        result: of a failed one, JSON with a `code` for its client.
    """

    status: Status
    result: str | None = None


class OperatorRecords(Protocol):
    """The store of job records as the operator changes it."""

    def views(self, records: Sequence[str]) -> Mapping[str, JobView]:
        """Read records, consistently; those that are not there or have expired are left out.

        Raises:
            Unavailable: the store did not give them all.
        """
        ...

    def reopen(self, asked: Sequence[Reopening], now: datetime) -> frozenset[str]:
        """Make jobs accepted again, with fresh attempts; each is watched and, for its owner, unfinished again.

        Gives the records for which it is so, by this call or by one before that did the same. A job that somebody works on, or
        that is not as it was seen, stays as it is.

        Raises:
            Unavailable: the store did not answer, or is busy; some may be ready. Doing it again is harmless.
        """
        ...

    def end(self, seen: JobView, ending: Ending, now: datetime) -> None:
        """End a job that has not ended; its record expires, and an attempt that still runs commits nothing.

        Raises:
            ClaimLost: it is not as it was seen.
            Unavailable: the store did not answer.
        """
        ...

    def give_back(self, seen: JobView, token: str, now: datetime, *, although_held: bool) -> None:
        """Let the next attempt of a running or retrying job begin at once; whoever held it commits nothing any more.

        Args:
            seen: the record as it was read.
            token: a fresh one, which nobody holds.
            now: from when on.
            although_held: also before the claim's deadline.

        Raises:
            ClaimLost: it is not as it was seen, or is held.
            Unavailable: the store did not answer.
        """
        ...
