"""The life of one delivery, from its text to its outcome: the file to read first.

1. parse: a message that can never run is dead-lettered at once; a payload from the future waits.
2. admit: with too little time left, or while a dependency's breaker is known to be open, it waits; no attempt exists yet.
3. lease: one job at a time works on a lock key; contention waits a moment here, then on the queue. Redis gone: go on or
   wait, as declared.
4. claim: the job record grants one more attempt, or says that the job has ended, is held, is too early, or is spent.
5. attempt: the job's own code reads, calls and stages; one transaction writes what was staged, the end of the job and
   its messages, if all is as it was read.
6. invalidate and give back the lease: after the commit, never before; if it fails, redelivery repeats only this.

The order is the guarantee. Dying between two steps is always repaired by the next delivery. What is cheaper for a whole
batch (see shared/pipeline/preparation.py) may have been done before.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, assert_never

from shared.claim import Answer, Ended, Granted, HeldByOther, KeyReused, NotAccepted, Spent, StaleCopy, TooEarly
from shared.errors import CacheUnavailable, Malformed, NewerVersion, Refused, SettingsError, Unavailable
from shared.failpoints import Failpoint, failpoint
from shared.job import WithoutLease
from shared.outcome import Because, Completed, DeadLettered, Duplicate, Outcome, Postponed, failure_of
from shared.pipeline.attempt import Committed

if TYPE_CHECKING:
    from datetime import datetime

    from shared.clock import Surroundings
    from shared.delivery import Delivery
    from shared.job_records import JobRecords
    from shared.pipeline.attempt import Attempts
    from shared.pipeline.finishing import Finishing
    from shared.pipeline.locking import Locking
    from shared.pipeline.postponing import Postponing
    from shared.pipeline.preparation import Preparation, Prepared
    from shared.pipeline.reporting import Reporting
    from shared.pipeline.run import Run
    from shared.pipeline.units import Units
    from shared.tag import Tag
    from shared.telemetry import Telemetry
    from shared.work.way import Ways
    from shared.worker import Worker

CLAIM_MARGIN = timedelta(seconds=1)  # after the invocation's end, for clocks that differ


class _LeavesEarly(Exception):  # noqa: N818 - how a delivery leaves the pipeline before its end
    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome)
        self.outcome = outcome


@dataclass(frozen=True, slots=True)
class Execution:
    """Runs the deliveries of one worker. Holds the stores, no state of its own.

    A step that ends a delivery raises `_LeavesEarly` with its outcome, so that `execute` reads as the order it keeps.
    """

    worker: Worker
    records: JobRecords
    preparation: Preparation
    locking: Locking
    finishing: Finishing
    ways: Ways
    units: Units
    attempts: Attempts
    postponing: Postponing
    here: Surroundings
    telemetry: Telemetry
    reporting: Reporting

    def execute(self, delivery: Delivery, until: datetime, prepared: Prepared | None = None) -> Outcome:
        """Run one delivery, prepared or not; `until` is when the invocation ends."""
        begun = self.here.clock.now()
        outcome: Outcome
        try:
            failpoint(Failpoint.RECEIVED)
            prepared = prepared or self._parse(delivery, until)
            self._admit(prepared)
            self._lease(prepared)
            granted = self._claim(prepared)
            tags = self._attempt(prepared, granted)
            self._invalidate(prepared, tags)
            outcome = Completed(granted.attempt)
        except _LeavesEarly as early:
            outcome = early.outcome
        except SettingsError as error:
            outcome = self.postponing.misconfigured(delivery, error)
        finally:
            if prepared is not None:
                self.preparation.let_go(prepared)
        self.reporting.report(delivery, prepared, outcome, begun)
        return outcome

    def _parse(self, delivery: Delivery, until: datetime) -> Prepared:
        try:
            return self.preparation.alone(delivery, until)
        except Malformed as error:
            failure = failure_of(error, self.here.clock.now())
            raise _LeavesEarly(DeadLettered(failure, _next_death(delivery))) from error
        except NewerVersion as error:
            raise _LeavesEarly(self.postponing.postponed(delivery, Because.NEWER_VERSION)) from error
        except Unavailable as error:
            raise _LeavesEarly(self.postponing.postponed(delivery, Because.STORE_UNAVAILABLE)) from error

    def _admit(self, prepared: Prepared) -> None:
        run = prepared.run
        self._go_on_unless_stopping()
        if run.message.run_at is not None:
            self._wait_for(run.message.run_at, run)
        if prepared.heartbeat is not None and prepared.heartbeat.lost.is_set():  # while it waited for its turn
            raise _LeavesEarly(self.postponing.postponed(run.delivery, Because.LEASE_LOST))
        if self.here.clock.now() + run.job.timeout > run.until - self._reserve:
            raise _LeavesEarly(Postponed(timedelta(seconds=1), Because.TOO_LITTLE_TIME))
        if (wait := self.ways.shut_for(run.job.dependencies)) > timedelta(0):
            raise _LeavesEarly(self.postponing.later(run.delivery, Because.DEPENDENCY_OPEN, wait))

    def _wait_for(self, moment: datetime, run: Run) -> None:
        """Return if the job may run by now. On a FIFO queue it would keep its group waiting: it is refused there."""
        if moment <= self.here.clock.now():
            return
        if self.worker.fifo:
            error = Malformed("run-at-on-fifo", "a FIFO queue runs a group in order: leave `run_at` out")
            failure = failure_of(error, self.here.clock.now())
            raise _LeavesEarly(DeadLettered(failure, run.death + 1, names=run.names))
        raise _LeavesEarly(Postponed(self._time_until(moment), Because.TOO_EARLY))

    def _lease(self, prepared: Prepared) -> None:
        """Take the locks that are missing; Redis gone: the conditions of the commit fence the job, or it waits."""
        run = prepared.run
        latest = run.until - self._reserve - run.job.timeout - self.here.clock.now()
        try:
            has_all = self.locking.take(prepared.locks, min(run.job.lock_wait, latest))
        except CacheUnavailable as error:
            self.telemetry.count("lease_unavailable", run.job.name)
            if run.job.without_lease is WithoutLease.POSTPONE:
                raise _LeavesEarly(self.postponing.postponed(run.delivery, Because.CACHE_GONE)) from error
            return
        if not has_all:
            self._go_on_unless_stopping()
            raise _LeavesEarly(self.postponing.postponed(run.delivery, Because.CONTENDED))
        failpoint(Failpoint.LEASED)

    def _claim(self, prepared: Prepared) -> Granted:
        run = prepared.run
        now = self.here.clock.now()
        until = run.until + CLAIM_MARGIN
        if prepared.heartbeat is not None:
            until = min(until, now + prepared.heartbeat.ask())
        claim = run.claim(self.here.tokens(), until)
        try:
            answer = self.records.claim(claim, now)
        except Unavailable as error:
            raise _LeavesEarly(self.postponing.postponed(run.delivery, Because.STORE_UNAVAILABLE)) from error
        except Refused as error:
            raise _LeavesEarly(DeadLettered(failure_of(error, now), run.death + 1, names=run.names)) from error
        failpoint(Failpoint.CLAIMED)
        return self._granted(prepared, answer, now)

    def _granted(self, prepared: Prepared, answer: Answer, now: datetime) -> Granted:
        run = prepared.run
        match answer:
            case Granted():
                if answer.follows_silence:
                    self.telemetry.count("visibility_expired", run.job.name)
                return answer
            case Ended(status=status, tags=tags):
                self._invalidate(prepared, tags)
                raise _LeavesEarly(Duplicate(status.value))
            case StaleCopy(status=status):
                raise _LeavesEarly(Duplicate(status.value))
            case HeldByOther(until=until):
                raise _LeavesEarly(Postponed(self._time_until(until), Because.HELD))
            case TooEarly(not_before=not_before):
                raise _LeavesEarly(Postponed(self._time_until(not_before), Because.TOO_EARLY))
            case Spent() | KeyReused() | NotAccepted():
                if isinstance(answer, Spent):
                    self._drop_step(prepared, answer.tags)
                raise _LeavesEarly(_hopeless(run, answer, now))
            case _:
                assert_never(answer)

    def _attempt(self, prepared: Prepared, granted: Granted) -> tuple[Tag, ...]:
        run = prepared.run
        deadline = min(run.until - self._reserve, self.here.clock.now() + run.job.timeout)
        heartbeats = () if prepared.heartbeat is None else (prepared.heartbeat,)
        for heartbeat in heartbeats:
            heartbeat.begin(granted.hold, deadline)
        work = self.units.of(run, granted, deadline, (*prepared.locks.leases, *heartbeats))
        ended = self.attempts.make(run, granted, work)
        if isinstance(ended, Committed):
            return ended.tags
        raise _LeavesEarly(ended)

    def _invalidate(self, prepared: Prepared, tags: tuple[Tag, ...]) -> None:
        """Drop the tags and give the leases back, in one exchange, with others if they end now. The job is done whatever happens here."""
        try:
            self.finishing.finish(prepared.run.delivery.message_id, tags, prepared.locks.leases)
        except CacheUnavailable as error:
            if tags:
                raise _LeavesEarly(
                    self.postponing.postponed(prepared.run.delivery, Because.INVALIDATION_FAILED)
                ) from error
        failpoint(Failpoint.INVALIDATED)

    def _drop_step(self, prepared: Prepared, tags: tuple[Tag, ...]) -> None:
        """Drop the tags of the last checkpoint of a job whose handler does not run any more: whoever took it may have died before."""
        try:
            self.locking.leases.drop(tags)
        except CacheUnavailable as error:
            raise _LeavesEarly(self.postponing.postponed(prepared.run.delivery, Because.INVALIDATION_FAILED)) from error

    def _go_on_unless_stopping(self) -> None:
        if self.here.stopping.is_set():
            raise _LeavesEarly(Postponed(timedelta(0), Because.STOPPING))

    @property
    def _reserve(self) -> timedelta:
        """What an invocation keeps for commit, invalidation and settlement."""
        return self.worker.margin / 2

    def _time_until(self, moment: datetime) -> timedelta:
        """The wait until a moment, a little later, spread."""
        spread = timedelta(seconds=1 + self.here.random.random())
        return max(moment - self.here.clock.now(), timedelta(0)) + spread


def _hopeless(run: Run, answer: Spent | KeyReused | NotAccepted, now: datetime) -> DeadLettered:
    """The dead letter of a delivery that gets no attempt any more."""
    if isinstance(answer, NotAccepted):
        error = Malformed("not-accepted", "the record that the message names is not there, or is of another job")
        return DeadLettered(failure_of(error, now), run.death + 1, names=run.names)
    if isinstance(answer, KeyReused):
        error = Malformed("idempotency-key-reused", "the key names a job with another payload")
        return DeadLettered(failure_of(error, now), run.death + 1, names=run.names)
    silent = Malformed("attempts-spent", "every attempt ended without a word: crashed, killed or out of time")
    return DeadLettered(
        answer.last_failure or failure_of(silent, now),
        run.death + 1,
        attempts=answer.attempts,
        first_failure=answer.first_failure,
        hold=answer.hold,
        names=run.names,
    )


def _next_death(delivery: Delivery) -> int:
    try:
        return delivery.death + 1
    except Malformed:
        return 1
