"""How an execution ends: a closed set of values. Settlement has one clause for each."""

from __future__ import annotations

import hashlib
import traceback
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import PurePath
from typing import TYPE_CHECKING, assert_never

from shared.classification import Kind, classify
from shared.errors import DeadLetter, Malformed, OutcomeUnknown

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from shared.job_record import Hold


class Because(StrEnum):
    """Why an execution was postponed; each costs no attempt."""

    CONTENDED = "contended"  # another job has the lock
    HELD = "held"  # another attempt of this job runs
    TOO_EARLY = "too-early"  # before `not_before`
    TOO_LITTLE_TIME = "too-little-time"  # of this invocation
    STOPPING = "stopping"  # the process was asked to end
    NEWER_VERSION = "newer-version"  # of the payload than this code knows
    CACHE_GONE = "cache-gone"  # and the job wants its lease
    MISCONFIGURED = "misconfigured"  # a setting is wrong, and the next deploy cures it
    STORE_UNAVAILABLE = "store-unavailable"  # DynamoDB did not answer
    LEASE_LOST = "lease-lost"
    CLAIM_LOST = "claim-lost"
    INVALIDATION_FAILED = "invalidation-failed"  # the job is done, only its invalidation is missing
    BEHIND = "behind"  # a message of its FIFO group that comes back
    ASKED = "asked"  # the handler raised Postpone
    HANDED_OVER = "handed-over"  # a long job goes on behind its checkpoint
    DEPENDENCY_OPEN = "dependency-open"  # its breaker is: nobody calls
    DEPENDENCY_LIMITED = "dependency-limited"  # its rate, concurrency or retry budget is used up
    DEPENDENCY_DOWN = "dependency-down"  # the call failed, as everybody's does


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong in an attempt.

    Attributes:
        at: when.
        reason: stable code, for people and for grouping ("transient", "unknown-order").
        error: class and short message.
        signature: the same for errors of one kind from one place; groups dead letters.
        dependency: the outside system that failed, where one did.
    """

    at: datetime
    reason: str
    error: str
    signature: str
    dependency: str | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """Returned by a handler whose job ended in a business failure that its client should see; it is committed like a result."""

    code: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Completed:
    """The commit is done and its tags are invalidated."""

    attempt: int


@dataclass(frozen=True, slots=True)
class Duplicate:
    """The job had ended before; nothing ran."""

    status: str


@dataclass(frozen=True, slots=True)
class Retried:
    """An attempt was spent; the next is due after the wait."""

    after: timedelta
    failure: Failure
    attempt: int


@dataclass(frozen=True, slots=True)
class Postponed:
    """No attempt was spent; the message comes back after the wait."""

    after: timedelta
    because: Because


@dataclass(frozen=True, slots=True)
class DeadLettered:
    """No attempt can help. `hold` is what this execution holds of the job record; None where it has no record to mark."""

    failure: Failure
    death: int
    attempts: int = 0
    first_failure: Failure | None = None
    hold: Hold | None = None
    names: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Unknown:
    """An outside effect may have happened; the reconciling job is on its way."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """The job waits for its parts; their ends wake it."""


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The job has ended because its client asked for it, or its parent's."""


Outcome = Completed | Duplicate | Retried | Postponed | DeadLettered | Unknown | Waiting | Cancelled

ERROR_LENGTH = 300


def failure_of(error: BaseException, at: datetime) -> Failure:
    """Describe an error without the values that pydantic and AWS quote in theirs."""
    verdict = classify(error)
    match error:
        case Malformed() | DeadLetter():
            reason, text = _clean(error.reason), _clean(error.detail)
        case OutcomeUnknown():
            reason, text = "outcome-unknown", _text(error)
            verdict = classify(error.__cause__ or error)
        case _:
            reason, text = (verdict.kind.value, _text(error))
    return Failure(
        at, reason, f"{type(error).__name__}: {text}"[:ERROR_LENGTH], signature(error, reason), verdict.dependency
    )


def signature(error: BaseException, reason: str) -> str:
    """Twelve hexadecimal digits, the same for one class of error with one reason from one function."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{PurePath(frames[-1].filename).name}:{frames[-1].name}" if frames else ""
    return hashlib.sha256(f"{type(error).__qualname__}|{reason}|{place}".encode()).hexdigest()[:12]


def _text(error: BaseException) -> str:
    if type(error).__module__.startswith("pydantic_core"):
        return "validation failed"
    return _clean(str(error))


def _clean(text: object) -> str:
    """Printable ASCII, whatever an author gave."""
    ascii_text = str(text).encode("ascii", "replace").decode()
    return "".join(character if character.isprintable() else " " for character in ascii_text)


def is_spent(kind: Kind, attempt: int, allowed: int) -> bool:
    """Whether no attempt is left after this one."""
    return kind is Kind.PERMANENT or attempt >= allowed


def told(outcome: Outcome) -> tuple[str, dict[str, object]]:
    """An outcome as its metric's name and the fields of its log line."""
    match outcome:
        case Completed(attempt=attempt):
            return "succeeded", {"attempt": attempt}
        case Duplicate(status=status):
            return "duplicates", {"status": status}
        case Retried(after=after, failure=failure, attempt=attempt):
            fields = {"attempt": attempt, "after_s": after.total_seconds(), "signature": failure.signature}
            return "retried", {**fields, "reason": failure.reason, "dependency": failure.dependency}
        case Postponed(after=after, because=because):
            return "postponed", {"after_s": after.total_seconds(), "because": because.value}
        case DeadLettered(failure=failure, attempts=attempts):
            fields = {"attempt": attempts, "reason": failure.reason, "signature": failure.signature}
            return "dead_lettered", {**fields, "dependency": failure.dependency}
        case Unknown() | Waiting() | Cancelled():
            return type(outcome).__name__.lower(), {}
        case _:
            assert_never(outcome)
