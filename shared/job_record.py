"""The job record: one item that is the truth about a job. Its values; knows no AWS, nor where it is kept.

Powertools' idempotency record, the operation that clients poll and the attempt history are this one item.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shared.commit import Progress
    from shared.outcome import Failure
    from shared.parts import Place, Split, Tally
    from shared.tag import Tag

SYSTEM = "system"  # owner of every job whose message came straight from SQS
RETENTION = timedelta(
    days=30
)  # longer than source (4 d) and dead-letter queue (14 d) keep a message, so replay is safe
# A queue keeps a message for four days: what has not ended an hour later, and was not given back since, has lost it.
QUEUE_RETENTION = timedelta(days=4)
LOST_AFTER = QUEUE_RETENTION + timedelta(hours=1)
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
    WAITING = "waiting"  # for its parts


ENDED = frozenset({Status.COMPLETED, Status.FAILED, Status.CANCELLED, Status.UNKNOWN})
OVER = frozenset({Status.COMPLETED, Status.FAILED, Status.CANCELLED, Status.DEAD_LETTERED})  # active no more


def record_id(owner: str, job_type: str, idempotency_key: str, generation: int = 0) -> str:
    """Key of the job record: sha256 over owner, job type and idempotency key; no two triples share one.

    A key that is unique only while its job is active names one record after the other: the generations.
    """
    named = [owner, job_type, idempotency_key, *([generation] if generation else [])]
    return hashlib.sha256(json.dumps(named).encode()).hexdigest()


def operation_id(record: str) -> str:
    """The name under which clients see the job; two racing requests derive the same."""
    return f"op_{record}"


@dataclass(frozen=True, slots=True)
class JobRequest:
    """Which job is asked for, with which payload: by a client, before any message exists, or by a delivery.

    Attributes:
        record: the record's key, derived from owner, job type and idempotency key.
        fingerprint: of the payload and its time.
        version: of the payload's schema.
        token: the request's own name; a try whose reply was lost is known by it.
    """

    record: str
    owner: str
    job_type: str
    idempotency_key: str
    fingerprint: str
    payload: str
    version: int
    token: str


@dataclass(frozen=True, slots=True)
class Hold:
    """Proof of a claim: conditional writes name its token."""

    record: str
    token: str


@dataclass(frozen=True, slots=True)
class Replayed:
    """The last time a job was made ready to run again from the dead-letter queue.

    Attributes:
        death: by which its copy is known: the number of deaths so far.
        by: who did it, as AWS names the caller.
    """

    death: int
    at: datetime
    by: str


@dataclass(frozen=True, slots=True)
class JobView:
    """A job record as others read it.

    Attributes:
        job_id: name of the message that the claim found first.
        earlier: where a key is unique only while its job is active: the names that began its last jobs before this one.
        trace: what asked for the job, as a `traceparent`; empty where nobody said.
        version: of the payload's schema.
        ended_at: when it ended or was last dead-lettered.
        look_at: when its message is lost, if the job has not ended by then.
        rescues: how often it was sent anew for that.
        begun_at: when its first attempt began; after a reconciliation that found nothing done, the first one since then.
        intents: the attempts that were about to make a call which cannot be repeated, by dependency.
        failures: of the attempts that were spent, the oldest first; a replay keeps the last few.
        replays: how often it was replayed from a dead-letter queue, and `replayed` tells of the last one.
        checkpoints: how many steps of it are committed; `checkpoint` is the state of the last one, as JSON, and
            `checkpoint_tags` what was to be invalidated after it; it was taken at `stepped_at`.
        split: how far it is split into parts, and `tally` what became of them, as it was told last.
        place: of a part: where it belongs.
        cancelling: whether its client has asked to end it although it has begun.
    """

    record: str
    status: Status
    attempts: int
    fingerprint: str
    death: int = 0
    result: str | None = None
    tags: tuple[Tag, ...] = ()
    token: str | None = None
    claim_until: datetime | None = None
    not_before: datetime | None = None
    expires: datetime | None = None
    payload: str | None = None
    job_id: str | None = None
    trace: str | None = None
    version: int = 1
    run_at: datetime | None = None
    ended_at: datetime | None = None
    look_at: datetime | None = None
    rescues: int = 0
    earlier: tuple[str, ...] = ()
    first_failure: Failure | None = None
    last_failure: Failure | None = None
    begun_at: datetime | None = None
    intents: Mapping[str, str] = field(default_factory=dict)
    failures: tuple[Failure, ...] = ()
    replays: int = 0
    replayed: Replayed | None = None
    checkpoints: int = 0
    checkpoint: str | None = None
    checkpoint_tags: tuple[Tag, ...] = ()
    stepped_at: datetime | None = None
    progress: Progress | None = None
    split: Split | None = None
    tally: Tally | None = None
    place: Place | None = None
    cancelling: bool = False
    names: dict[str, str] = field(default_factory=dict)

    @property
    def ended(self) -> bool:
        """Whether the job has ended by itself; a dead letter waits for a decision."""
        return self.status in ENDED

    def has_expired(self, now: datetime) -> bool:
        """Whether the record counts as absent; one whose expiry is exactly now has expired."""
        return self.expires is not None and self.expires <= now

    def is_held(self, now: datetime) -> bool:
        """Whether an attempt holds the job; a claim whose deadline is exactly now still holds."""
        return self.status is Status.RUNNING and self.claim_until is not None and self.claim_until >= now
