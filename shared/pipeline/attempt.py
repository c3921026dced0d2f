"""One run of a handler: from the grant of its claim to the commit, or to giving the claim back.

Whatever a handler raises is classified here, once. Nothing is written unless everything is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from shared.classification import Kind, classify
from shared.commit import Commit, Release
from shared.errors import (
    CancelAsked,
    ClaimLost,
    HandOver,
    InvalidationFailed,
    LeaseLost,
    NoAnswer,
    NotNow,
    OutcomeUnknown,
    PartsUnderWay,
    Postpone,
    SettingsError,
    Stopping,
    StoreUnavailable,
    Unavailable,
    Unrepeatable,
)
from shared.failpoints import Failpoint, failpoint
from shared.job_record import Status
from shared.outbox import posting_of
from shared.outcome import (
    Because,
    Cancelled,
    DeadLettered,
    Outcome,
    Postponed,
    Retried,
    Unknown,
    Waiting,
    failure_of,
    is_spent,
)
from shared.pipeline.postponing import within_reason
from shared.pipeline.result import commit_of
from shared.rounds.counting import LOOK_EVERY

if TYPE_CHECKING:
    from datetime import datetime

    from shared.claim import Granted
    from shared.clock import Surroundings
    from shared.job_record import JobView
    from shared.job_records import JobRecords
    from shared.outbox import Posting
    from shared.pipeline.finishing import Finishing
    from shared.pipeline.postponing import Postponing
    from shared.pipeline.run import Run
    from shared.rounds.counting import Counting
    from shared.tag import Tag
    from shared.telemetry import Telemetry
    from shared.unit_of_work import UnitOfWork
    from shared.work.way import Way


@dataclass(frozen=True, slots=True)
class Committed:
    """The transaction is written; these tags are to be invalidated."""

    tags: tuple[Tag, ...]


@dataclass(frozen=True, slots=True)
class Attempts:
    """Makes attempts of one worker's jobs."""

    worker: str
    records: JobRecords
    here: Surroundings
    telemetry: Telemetry
    counting: Counting
    finishing: Finishing
    postponing: Postponing

    def make(self, run: Run, granted: Granted, work: UnitOfWork) -> Committed | Outcome:
        """Run the handler and commit; or tell how it ended otherwise."""
        try:
            work.steps.resume()
            self._go_on_unless_cancelled(granted)
            commit = commit_of(run.job(run.payload, work), work)
            tags = work.staged.tags
            failpoint(Failpoint.HANDLED)
            self.finishing.expect(run.delivery.message_id)
            self.records.commit(granted.hold, commit, self.here.clock.now())
        except (OutcomeUnknown, Unrepeatable) as error:
            return self._stopped(run, granted, work, error)
        except (PartsUnderWay, CancelAsked) as error:
            end = self._cancelled if isinstance(error, CancelAsked) else self._wait
            return end(run, granted, work.steps.view)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a handler raises is classified here, once
            return self._failed(run, granted, error, work.calls.way)
        failpoint(Failpoint.COMMITTED)
        if commit.status is Status.FAILED:
            self.telemetry.count("failed", run.job.name)
        if work.steps.is_split:
            self._tell_tally(work.steps.view)
        return Committed(tags)

    def _go_on_unless_cancelled(self, granted: Granted) -> None:
        """Return unless the job is not wanted any more, or is a part that never began of one that is not.

        Raises:
            CancelAsked: it is so.
        """
        view = granted.view
        # Whether a call that cannot be repeated was done is found out first: the handler runs into it.
        is_cancelled = view.cancelling and not view.intents
        if view.place is not None and granted.begins:
            try:
                parent = self.records.view(view.place.parent)
            except Unavailable:
                return  # it runs, as it would have a moment earlier
            is_cancelled = parent is not None and (parent.cancelling or parent.status is Status.CANCELLED)
        if is_cancelled:
            message = "The job is not wanted any more."
            raise CancelAsked(message)

    def _cancelled(self, run: Run, granted: Granted, view: JobView) -> Outcome:
        """End a job that is not wanted any more. One that is split waits for its parts first: those that have begun end."""
        try:
            tally = None if view.split is None else self.counting.parts.tally(view.split)
            if tally is not None and not tally.is_over:
                return self._wait(run, granted, view)
            self.records.commit(granted.hold, Commit(Status.CANCELLED, tally=tally), self.here.clock.now())
        except Exception as failed:  # noqa: BLE001 - as for every attempt
            return self._failed(run, granted, failed)
        failpoint(Failpoint.COMMITTED)
        self._tell_tally(view)
        return Cancelled()

    def _tell_tally(self, view: JobView) -> None:
        """Tell the ends that came while the job ended, when nobody else does; what was counted before is in the commit."""
        if view.split is None:
            return
        try:
            self.counting.parts.tell(view.record, view.split, self.counting.parts.tally(view.split))
        except Unavailable as error:
            self.telemetry.warn("tally_not_told", error=type(error).__name__)

    def _wait(self, run: Run, granted: Granted, view: JobView) -> Outcome:
        """Let the job wait for its parts, and look whether the last one ended before it did."""
        now = self.here.clock.now()
        try:
            self.counting.parts.wait(view, now + LOOK_EVERY, now)
        except Exception as failed:  # noqa: BLE001 - as for every attempt
            return self._failed(run, granted, failed)
        failpoint(Failpoint.WAITING)
        try:
            self.counting.settle(replace(view, status=Status.WAITING))
        except Unavailable as error:  # its parts' ends settle it, or the sweeper does
            self.telemetry.warn("not_settled", error=type(error).__name__)
        return Waiting()

    def _failed(self, run: Run, granted: Granted, error: Exception | SystemExit, way: Way | None = None) -> Outcome:
        """Spend the attempt or give it back; the claim is released unless the message is to be dead-lettered."""
        now = self.here.clock.now()
        unspent = self._unspent(run, granted, error, now)
        if unspent is not None:
            return unspent
        verdict = classify(error)
        failure = failure_of(error, now)
        is_outside = verdict.kind is Kind.TRANSIENT and verdict.dependency is not None
        if is_outside and way is not None and way.excuses(verdict.dependency or ""):
            postponed = self.postponing.later(run.delivery, Because.DEPENDENCY_DOWN, verdict.after or timedelta(0))
            self._release(granted, Release(now + postponed.after, failure, gives_attempt_back=True))
            return postponed
        if is_spent(verdict.kind, granted.attempt, run.job.retry.attempts_for(verdict.kind)):
            return DeadLettered(
                failure,
                run.death + 1,
                attempts=granted.attempt,
                first_failure=granted.view.first_failure or failure,
                hold=granted.hold,
                names=run.names,
            )
        after = within_reason(verdict.after or run.job.retry.wait(granted.attempt, self.here.random))
        self._release(granted, Release(now + after, failure))
        return Retried(after, failure, granted.attempt)

    def _unspent(self, run: Run, granted: Granted, error: Exception | SystemExit, now: datetime) -> Postponed | None:
        """Give the attempt back where the error says by itself that none is spent; None where it does not."""
        match error:
            case ClaimLost():
                return self.postponing.postponed(run.delivery, Because.CLAIM_LOST)
            case NoAnswer():
                # Written or not: the claim stays, and whoever comes after its deadline finds out.
                return self.postponing.postponed(run.delivery, Because.STORE_UNAVAILABLE)
            case StoreUnavailable():
                self._release(granted, Release(now, gives_attempt_back=True))
                return self.postponing.postponed(run.delivery, Because.STORE_UNAVAILABLE)
            case SettingsError():
                self._release(granted, Release(now, gives_attempt_back=True))
                return self.postponing.misconfigured(run.delivery, error)
            case Postpone(after=asked):
                after = within_reason(asked)
                self._release(granted, Release(now + after, gives_attempt_back=True))
                return Postponed(after, Because.ASKED)
            case NotNow(after=after, is_open=is_open):
                # Longer than the gate says, and by chance: those that wait do not all come back in one moment.
                because = Because.DEPENDENCY_OPEN if is_open else Because.DEPENDENCY_LIMITED
                postponed = self.postponing.later(run.delivery, because, after)
                self._release(granted, Release(now + postponed.after, gives_attempt_back=True))
                return postponed
            case Stopping() | HandOver():
                self._release(granted, Release(now, gives_attempt_back=True))
                return Postponed(timedelta(0), Because.STOPPING if isinstance(error, Stopping) else Because.HANDED_OVER)
            case LeaseLost() | InvalidationFailed():
                because = Because.LEASE_LOST if isinstance(error, LeaseLost) else Because.INVALIDATION_FAILED
                self._release(granted, Release(now, gives_attempt_back=True))
                return self.postponing.postponed(run.delivery, because)
        return None

    def _stopped(self, run: Run, granted: Granted, work: UnitOfWork, error: OutcomeUnknown | Unrepeatable) -> Outcome:
        """Stop the job and send its reconciling job, in one transaction; nothing that was staged is written.

        Without a reconciling job it waits for people: what may have been done is not done again.
        """
        now = self.here.clock.now()
        try:
            postings: tuple[Posting, ...] = ()
            if isinstance(error, OutcomeUnknown):
                message, name = work.named(error.reconcile), self.here.tokens()
                postings = (posting_of(message, name, self.worker, group=run.delivery.group),)
            commit = Commit(Status.UNKNOWN, postings=postings, failure=failure_of(error, now))
            self.records.commit(granted.hold, commit, now)
            failpoint(Failpoint.COMMITTED)
        except Exception as failed:  # noqa: BLE001 - as for every attempt
            return self._failed(run, granted, failed)
        return Unknown()

    def _release(self, granted: Granted, release: Release) -> None:
        try:
            self.records.release(granted.hold, release, self.here.clock.now())
        except (ClaimLost, Unavailable) as error:
            # Another holds it, or the claim ends at its deadline: either way the next delivery finds out.
            self.telemetry.warn("claim_not_released", error=type(error).__name__)
        failpoint(Failpoint.CLAIM_RELEASED)
