"""The job record: one item that is the truth about a job. Values and the store's Protocol; knows no AWS.

Powertools' idempotency record, the operation that clients poll and the attempt history are this one item.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from shared.outbox import Posting
    from shared.outcome import Failure
    from shared.unit_of_work import Write

SYSTEM = "system"  # owner of every job whose message came straight from SQS
RETENTION = timedelta(
    days=30
)  # longer than source (4 d) and dead-letter queue (14 d) keep a message, so replay is safe
EXPIRY_MARGIN = timedelta(hours=1)  # DynamoDB may delete only what has long been treated as gone


class Status(StrEnum):
    """State of a job."""

    ACCEPTED = "accepted"
    RUNNING = "running"
    RETRYING = "retrying"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    DEAD_LETTERED = "dead-lettered"
    UNKNOWN = "unknown"


ENDED = frozenset({Status.COMPLETED, Status.FAILED, Status.CANCELLED, Status.UNKNOWN})


def record_id(owner: str, job_type: str, idempotency_key: str) -> str:
    """Key of the job record: sha256 over owner, job type and idempotency key; no two triples share one."""
    return hashlib.sha256(json.dumps([owner, job_type, idempotency_key]).encode()).hexdigest()


def operation_id(record: str) -> str:
    """The name under which clients see the job; two racing requests derive the same."""
    return f"op_{record[:32]}"


@dataclass(frozen=True, slots=True)
class Claim:
    """A request to hold a job for one more attempt.

    Attributes:
        record: the record's key.
        token: this attempt's own name; every later write of the attempt names it.
        until: claim deadline; after it another may take over.
        max_attempts: of the job type; no attempt beyond is granted.
        death: the delivery's count of deaths; it must equal the record's.
    """

    record: str
    owner: str
    job_type: str
    idempotency_key: str
    fingerprint: str
    payload: str
    version: int
    token: str
    until: datetime
    max_attempts: int
    death: int


@dataclass(frozen=True, slots=True)
class Hold:
    """Proof of a claim: conditional writes name its token."""

    record: str
    token: str


@dataclass(frozen=True, slots=True)
class Granted:
    """The job is held; this is its attempt number `attempt`, counted at the claim."""

    hold: Hold
    attempt: int
    first_failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """The job has ended: whatever came is a duplicate."""

    status: Status
    tags: tuple[str, ...] = ()
    result: str | None = None


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
    """All attempts are used up and the last one is over."""

    hold: Hold
    attempts: int
    first_failure: Failure | None = None
    last_failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class KeyReused:
    """The key names a job with another payload."""


@dataclass(frozen=True, slots=True)
class StaleCopy:
    """A copy from before the job was last dead-lettered or replayed: a duplicate."""

    status: Status


Answer = Granted | Ended | HeldByOther | TooEarly | Spent | KeyReused | StaleCopy


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a reconciling job settles an unknown one, in its own commit.

    With status RETRYING the job runs again; the message that makes it run belongs into the same unit of work.
    """

    record: str
    status: Status
    result: str | None = None


@dataclass(frozen=True, slots=True)
class Commit:
    """All that one transaction does: business writes, outbox items, the record's end, and an unknown job's settlement."""

    status: Status
    result: str | None = None
    tags: tuple[str, ...] = ()
    writes: tuple[Write, ...] = ()
    postings: tuple[Posting, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class Release:
    """How an attempt that committed nothing gives the job back.

    Attributes:
        not_before: when the next attempt may begin.
        failure: what went wrong; None where nothing did.
        gives_attempt_back: whether the attempt is not counted.
    """

    not_before: datetime
    failure: Failure | None = None
    gives_attempt_back: bool = False


@dataclass(frozen=True, slots=True)
class JobView:
    """A job record as others read it."""

    record: str
    status: Status
    attempts: int
    fingerprint: str
    death: int = 0
    result: str | None = None
    tags: tuple[str, ...] = ()
    token: str | None = None
    claim_until: datetime | None = None
    not_before: datetime | None = None
    expires: datetime | None = None
    payload: str | None = None
    first_failure: Failure | None = None
    last_failure: Failure | None = None
    names: dict[str, str] = field(default_factory=dict)


class Step(StrEnum):
    """The conditional write that a claim needs."""

    FRESH = "fresh"  # no record yet
    INCREMENT = "increment"  # one more attempt, also after another's deadline
    RESET = "reset"  # attempts begin anew: the record has expired, or its dead letter was replayed


def decide(seen: JobView | None, claim: Claim, now: datetime) -> Answer | Step:  # noqa: C901 - the table of states
    """What a claim means for the record seen: an answer, or the write that would grant it.

    A record whose expiry is exactly now has expired; a claim whose deadline is exactly now still holds.
    """
    if seen is None:
        return Step.FRESH
    if seen.expires is not None and seen.expires <= now:
        return Step.RESET
    if seen.status is Status.RUNNING and seen.token == claim.token:
        return Granted(Hold(claim.record, claim.token), seen.attempts, seen.first_failure)
    if differs(seen.fingerprint, claim.fingerprint):
        return KeyReused()
    if seen.status in ENDED:
        return Ended(seen.status, seen.tags, seen.result)
    if claim.death < seen.death:
        return StaleCopy(seen.status)
    if seen.status is Status.RUNNING and seen.claim_until is not None and seen.claim_until >= now:
        return HeldByOther(seen.claim_until)
    if seen.status is Status.DEAD_LETTERED or claim.death > seen.death:
        return Step.RESET
    if seen.not_before is not None and seen.not_before > now:
        return TooEarly(seen.not_before)
    if seen.attempts >= claim.max_attempts:
        hold = Hold(claim.record, seen.token or "")
        return Spent(hold, seen.attempts, seen.first_failure, seen.last_failure)
    return Step.INCREMENT


def differs(stored: str, claimed: str) -> bool:
    """Whether two fingerprints name different payloads; those of different schema versions cannot be compared."""
    return stored.partition(":")[0] == claimed.partition(":")[0] and stored != claimed


class JobRecords(Protocol):
    """The store of job records. Each method is one conditional write; a lost reply is resolved by the attempt token."""

    def claim(self, claim: Claim, now: datetime) -> Answer:
        """Hold the job for one more attempt, or say why not.

        Raises:
            Unavailable: the store did not answer; whether it was granted shows at the next claim.
        """
        ...

    def commit(self, hold: Hold, commit: Commit, now: datetime) -> None:
        """Write everything in one transaction, if this attempt still holds the job and nothing it read has changed.

        Raises:
            ClaimLost: the job is no longer held by this attempt; nothing was written.
            Conflict: an item read has changed; nothing was written.
            Refused: the store would refuse it whatever comes; nothing was written.
            Unavailable: it did not answer, or is busy. A later claim tells what happened.
        """
        ...

    def release(self, hold: Hold, release: Release, now: datetime) -> None:
        """Give the job back for a later attempt.

        Raises:
            ClaimLost: it is no longer held.
            Unavailable: the store did not answer; the claim ends at its deadline.
        """
        ...

    def bury(self, hold: Hold, death: int, failure: Failure, now: datetime) -> None:
        """Mark the job dead-lettered for the `death`-th time, after its message is in the dead-letter queue.

        Raises:
            ClaimLost: it is no longer held.
            Unavailable: the store did not answer.
        """
        ...

    def view(self, record: str) -> JobView | None:
        """Read a record, consistently; None if there is none or it has expired."""
        ...
