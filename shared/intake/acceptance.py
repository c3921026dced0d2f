"""Accepting a job from a client, before any message exists: what is asked for, and what is answered.

The stores write the job record and the outbox item in one transaction, so that there is never one without the other.
Two requests with one key find the same record, whoever comes first; a lost reply is found again by its token.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from shared.claim import differs
from shared.job_record import JobRequest, Status

if TYPE_CHECKING:
    from datetime import datetime

    from shared.job_record import JobView
    from shared.outbox import Posting


# Where a job of many steps may be asked to end before its next one.
STOPPABLE = (Status.RUNNING, Status.RETRYING, Status.WAITING)


@dataclass(frozen=True, slots=True)
class Acceptance(JobRequest):
    """A client's request for a job.

    Attributes:
        posting: the message that asks the worker for the job.
        run_at: before which the job does not run.
        trace: of the request, as a `traceparent`.
        base: of a key that is unique only while its job is active: the record of its first generation.
        generation: the one that is asked for; `record` is its record.
    """

    posting: Posting
    run_at: datetime | None = None
    trace: str | None = None
    base: str | None = None
    generation: int = 0


@dataclass(frozen=True, slots=True)
class Accepted:
    """The job is accepted now, by this request."""

    view: JobView


@dataclass(frozen=True, slots=True)
class Replayed:
    """It was accepted before, by the same request or one like it."""

    view: JobView


@dataclass(frozen=True, slots=True)
class OtherPayload:
    """The key names a job with another payload; nothing is written."""

    view: JobView


@dataclass(frozen=True, slots=True)
class Overtaken:
    """A later generation of the key has begun; nothing is written."""


Acceptances = Accepted | Replayed | OtherPayload | Overtaken


class AcceptsJobs(Protocol):
    """The store of job records as the front door sees it."""

    def accept(self, acceptance: Acceptance, now: datetime) -> Acceptances:
        """Write the record and the message, or find what was written before.

        Raises:
            Unavailable: the store did not answer or is busy: nothing is written, or everything; the same request
                tells which.
            Refused: the store would refuse it whatever comes; nothing was written.
        """
        ...

    def generation(self, base: str) -> int:
        """The latest generation of a key that is unique only while its job is active; 0 before the second.

        Raises:
            Unavailable: the store did not answer.
        """
        ...

    def cancel(self, record: str, owner: str, now: datetime) -> JobView | None:
        """Cancel the owner's job if no attempt of it ever began, and give it as it is then; None if the owner has none such.

        One that has begun or ended is given as it is: what an attempt has done outside cannot be taken back, although it
        committed nothing. A job of many steps is asked to end before its next one, and its parts that have not begun end.
        Repeating it changes nothing.

        Raises:
            Unavailable: the store did not answer; it may be cancelled.
        """
        ...


def answer_for(acceptance: Acceptance, seen: JobView, accepted_by: str | None) -> Accepted | Replayed | OtherPayload:
    """What a record that stood in the way means."""
    if differs(seen.fingerprint, acceptance.fingerprint):
        return OtherPayload(seen)
    return Accepted(seen) if accepted_by == acceptance.token else Replayed(seen)
