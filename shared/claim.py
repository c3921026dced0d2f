"""Claiming a job for one more attempt: what is asked, what is answered, and the table of states that decides.

The stores put this table into one conditional write; what they cannot grant they answer by it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from shared.job_record import ENDED, OVER, Hold, JobRequest, Status

if TYPE_CHECKING:
    from datetime import datetime

    from shared.job_record import JobView
    from shared.outcome import Failure
    from shared.tag import Tag

NAMES_KEPT = 20  # so many jobs of one key would have to end while a copy of a message is still on its way


@dataclass(frozen=True, slots=True)
class Claim(JobRequest):
    """A request to hold a job for one more attempt; every later write of the attempt names its token.

    Attributes:
        until: claim deadline; after it another may take over.
        max_attempts: of the job type; no attempt beyond is granted.
        death: the delivery's count of deaths; it must equal the record's.
        accepted: whether the record must be there already, since the front door wrote it.
        job_id: the message's own name; empty where it has none.
        trace: of what asked for the job, as a `traceparent`.
        run_at: before which the job must not run, as its message says.
        reopens: when the message was made, if its key is unique only while a job is active.
    """

    until: datetime
    max_attempts: int
    death: int
    accepted: bool = False
    job_id: str | None = None
    trace: str | None = None
    reopens: datetime | None = None
    run_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Granted:
    """The job is held since `at`; `view` is its record as the claim has left it."""

    hold: Hold
    view: JobView
    at: datetime

    @property
    def attempt(self) -> int:
        """The number of this attempt, counted at the claim."""
        return self.view.attempts

    @property
    def begins(self) -> bool:
        """Whether no attempt of the job ever began before."""
        return self.view.begun_at == self.at

    @property
    def follows_silence(self) -> bool:
        """Whether an attempt before this one ended without a word: crashed, killed or out of time."""
        return self.attempt - 1 > len(self.view.failures)


@dataclass(frozen=True, slots=True)
class Ended:
    """The job has ended: whatever came is a duplicate."""

    status: Status
    tags: tuple[Tag, ...] = ()


@dataclass(frozen=True, slots=True)
class HeldByOther:
    """Another attempt holds the job until then."""

    until: datetime


@dataclass(frozen=True, slots=True)
class TooEarly:
    """The job must not run before then."""

    not_before: datetime


@dataclass(frozen=True, slots=True)
class Spent:
    """All attempts are used up and the last one is over; the tags are those of its last checkpoint."""

    hold: Hold
    attempts: int
    first_failure: Failure | None = None
    last_failure: Failure | None = None
    tags: tuple[Tag, ...] = ()


@dataclass(frozen=True, slots=True)
class KeyReused:
    """The key names a job with another payload."""


@dataclass(frozen=True, slots=True)
class NotAccepted:
    """The message names a record that is not there, or of another job: it expired, or nobody accepted it."""


@dataclass(frozen=True, slots=True)
class StaleCopy:
    """A copy from before the job was last dead-lettered or replayed: a duplicate."""

    status: Status


Answer = Granted | Ended | HeldByOther | TooEarly | Spent | KeyReused | NotAccepted | StaleCopy


class Step(StrEnum):
    """The conditional write that a claim needs."""

    FRESH = "fresh"  # no record yet
    INCREMENT = "increment"  # one more attempt, also after another's deadline
    RESET = "reset"  # attempts begin anew: the record has expired, or its dead letter was replayed


def decide(seen: JobView | None, claim: Claim, now: datetime) -> Answer | Step:  # noqa: C901 - the table of states
    """What a claim means for the record seen: an answer, or the write that would grant it.

    A record whose expiry is exactly now has expired; a claim whose deadline is exactly now still holds.
    """
    if claim.accepted and not _is_of(seen, claim, now):
        return NotAccepted()
    if seen is None:
        return Step.FRESH
    if seen.has_expired(now):
        return Step.RESET
    if seen.status is Status.RUNNING and seen.token == claim.token:
        return Granted(Hold(claim.record, claim.token), seen, now)
    if _begins_again(seen, claim):
        return Step.RESET
    if differs(seen.fingerprint, claim.fingerprint):
        return KeyReused()
    if seen.status in ENDED or seen.status is Status.WAITING:  # its parts are at work, and it is sent anew after them
        return Ended(seen.status, seen.tags)
    if claim.death < seen.death:
        return StaleCopy(seen.status)
    if seen.is_held(now) and seen.claim_until is not None:
        return HeldByOther(seen.claim_until)
    if seen.status is Status.DEAD_LETTERED or claim.death > seen.death:
        return Step.RESET
    if seen.not_before is not None and seen.not_before > now:
        return TooEarly(seen.not_before)
    if seen.attempts >= claim.max_attempts:
        hold = Hold(claim.record, seen.token or "")
        return Spent(hold, seen.attempts, seen.first_failure, seen.last_failure, seen.checkpoint_tags)
    return Step.INCREMENT


def _is_of(seen: JobView | None, claim: Claim, now: datetime) -> bool:
    """Whether the record is there, and of the job that the message names."""
    if seen is None or seen.has_expired(now):
        return False
    return (seen.names.get("job_type"), seen.names.get("idempotency_key")) == (claim.job_type, claim.idempotency_key)


def _begins_again(seen: JobView, claim: Claim) -> bool:
    """Whether a key that is unique only while its job is active names another job now.

    The message must be another one than those that did so before, made after the end: by its time alone a copy from a
    producer whose clock is ahead would run twice, by its name alone one that was sent while the job was active would.
    """
    if claim.reopens is None or claim.job_id in {None, seen.job_id, *seen.earlier} or seen.ended_at is None:
        return False
    return seen.status in OVER and seen.ended_at < claim.reopens


def is_another_job(seen: JobView, claim: Claim, now: datetime) -> bool:
    """Whether a record that is begun anew stands for another job now, and not for a dead letter's next life."""
    return seen.has_expired(now) or _begins_again(seen, claim)


def names_before(seen: JobView) -> tuple[str, ...]:
    """The names of the messages whose jobs the key has named so far, the latest of them."""
    known = [name for name in seen.earlier if name != seen.job_id]
    return (*known, *([seen.job_id] if seen.job_id else []))[-NAMES_KEPT:]


def differs(stored: str, claimed: str) -> bool:
    """Whether two fingerprints name different payloads; those that were read in different ways cannot be compared."""
    return stored.partition(":")[0] == claimed.partition(":")[0] and stored != claimed
