"""Every error of the product, under one root. A class's docstring says what its reader should do."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import timedelta

    from shared.message import Message


class TahanError(Exception):
    """Root of all errors of this product."""


class DeclarationError(TahanError):
    """A job, worker or setting is declared wrongly: change it as the message says."""


class SettingsError(TahanError):
    """The environment lacks a setting, or holds one that is wrong: set it as the message says."""


class EventError(TahanError):
    """The Lambda input is not what the event source promises: check which source is mapped to the function."""


class Malformed(TahanError):  # noqa: N818 - a message is malformed, nothing erred
    """The message can never run: it is dead-lettered at once with `reason` (a stable code) and `detail`."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


class NewerVersion(TahanError):  # noqa: N818
    """The payload is of a version this code does not know yet: it waits for the code that does."""


class Refused(TahanError):  # noqa: N818
    """DynamoDB or SQS would refuse this value: store or send another one. Nothing was written."""


class Conflict(TahanError):  # noqa: N818
    """Something this unit of work read has changed since: nothing was written, a later attempt reads anew."""


class ClaimLost(TahanError):  # noqa: N818
    """Another attempt took the job over, or it was cancelled: this attempt changes nothing more."""


class LeaseLost(TahanError):  # noqa: N818
    """The lease ran out or went to another: stop, the job is postponed and begins anew."""


class Stopping(TahanError):  # noqa: N818
    """The process was asked to end: stop, the job goes back to the queue with its attempt."""


class CancelAsked(TahanError):  # noqa: N818
    """The client asked to end the job between two of its steps: let it fly, nothing of this step is written."""


class PartsUnderWay(TahanError):  # noqa: N818
    """The parts of the job have not all ended: let it fly, the job goes on behind its checkpoint when they have."""


class HandOver(TahanError):  # noqa: N818
    """Too little time is left for the next step: let it fly, the job goes on behind its checkpoint in the next invocation."""


class InvalidationFailed(TahanError):  # noqa: N818
    """A checkpoint is committed, and its cache tags are not dropped: the job is postponed, and goes on when they are."""


class CacheUnavailable(TahanError):  # noqa: N818
    """Redis did not answer, or not as it should: what it holds may be lost, so nothing may depend on it."""


class Unavailable(TahanError):  # noqa: N818
    """A service did not do it and may do it later (refused connection, 429, 5xx, throttling): retry after `after`."""

    def __init__(self, message: str, *, dependency: str, after: timedelta | None = None) -> None:
        super().__init__(message)
        self.dependency = dependency
        self.after = after


class StoreUnavailable(Unavailable):
    """A store of the product's own did not do it and may do it later: let it fly, the job gets its attempt back."""

    def __init__(self, message: str, *, dependency: str = "store", after: timedelta | None = None) -> None:
        super().__init__(message, dependency=dependency, after=after)


class NoAnswer(StoreUnavailable):
    """The commit was sent to the store, and neither it nor a look at the record was answered: it may be written."""


class Ambiguous(TahanError):  # noqa: N818
    """The request was sent and no answer came: it may have been done. Ask, or repeat it with the same key."""

    def __init__(self, message: str, *, dependency: str) -> None:
        super().__init__(message)
        self.dependency = dependency


class Unrepeatable(Ambiguous):
    """It may have been done, and the service takes no key: ask it, by a reconciling job; the job never calls again by itself."""


class AlreadyCalled(Unrepeatable):
    """An earlier attempt was about to call, and nobody knows how that ended: nothing was sent now."""


class NotNow(TahanError):  # noqa: N818
    """A dependency is not to be called now: let it fly, the job is postponed and its attempt given back."""

    def __init__(self, message: str, *, dependency: str, after: timedelta, is_open: bool) -> None:
        super().__init__(message)
        self.dependency = dependency
        self.after = after
        self.is_open = is_open


class Rejected(TahanError):  # noqa: N818
    """A service answered that it will not do it (4xx): repeating the same request cannot help."""

    def __init__(self, message: str, *, dependency: str, status: int) -> None:
        super().__init__(message)
        self.dependency = dependency
        self.status = status


class NotSent(TahanError):  # noqa: N818
    """SQS did not take the message: send it again with the same idempotency key."""


class HandlerEnded(TahanError):  # noqa: N818
    """Root of the ways in which a handler may end without a result."""


class RetryLater(HandlerEnded):
    """Raised by a handler to spend this attempt and run again after `after`, 12 hours at the most (by default: Retry)."""

    def __init__(self, reason: str, *, after: timedelta | None = None) -> None:
        super().__init__(reason)
        self.after = after


class Postpone(HandlerEnded):
    """Raised by a handler to run again after `after`, 12 hours at the most, without spending an attempt."""

    def __init__(self, reason: str, *, after: timedelta) -> None:
        super().__init__(reason)
        self.after = after


class DeadLetter(HandlerEnded):
    """Raised by a handler when no later attempt can help: the message is dead-lettered with `reason`."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self.detail = detail


class OutcomeUnknown(HandlerEnded):
    """Raised by a handler when an outside effect may or may not have happened: `reconcile` is sent to find out."""

    def __init__(self, reason: str, *, reconcile: Message) -> None:
        super().__init__(reason)
        self.reconcile = reconcile
