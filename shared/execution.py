"""The life of one delivery, from its text to its outcome: the file to read first.

1. parse: a message that can never run is dead-lettered at once.
2. admit: a payload from the future, or too little time left, waits; no attempt exists yet.
3. lease: one job at a time works on a lock key; contention waits. Redis gone: go on or wait, as declared.
4. claim: the job record grants one more attempt, or says that the job has ended, is held, is too early, or is spent.
5. handle: the job's own code reads, calls and stages.
6. commit: one transaction writes what was staged, the end of the job and its messages, if all is as it was read.
7. invalidate and give back the lease: after the commit, never before; if it fails, redelivery repeats only this.

The order is the guarantee. Dying between two steps is always repaired by the next delivery.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, assert_never

from pydantic import BaseModel

from shared.errors import (
    CacheUnavailable,
    ClaimLost,
    LeaseLost,
    Malformed,
    NewerVersion,
    OutcomeUnknown,
    Postpone,
    Refused,
    Unavailable,
)
from shared.job import WithoutLease
from shared.job_record import (
    SYSTEM,
    Claim,
    Commit,
    Ended,
    Granted,
    HeldByOther,
    KeyReused,
    Release,
    Spent,
    StaleCopy,
    Status,
    TooEarly,
    operation_id,
    record_id,
)
from shared.limits import check_value
from shared.message import ENCODING_ATTRIBUTE, fingerprint, json_text, read_message, typed_payload
from shared.outbox import posting_of
from shared.outcome import (
    Because,
    Completed,
    DeadLettered,
    Duplicate,
    Failed,
    Outcome,
    Postponed,
    Retried,
    Unknown,
    failure_of,
    is_spent,
    told,
)
from shared.retry import classify
from shared.telemetry import NO_JOB_TYPE
from shared.unit_of_work import UnitOfWork
from shared.worker import LONGEST_POSTPONEMENT, SHORTEST_POSTPONEMENT

if TYPE_CHECKING:
    from random import Random

    from shared.clock import Clock, Tokens
    from shared.delivery import Delivery
    from shared.dependency import Transport
    from shared.job import Job, Payload
    from shared.job_record import JobRecords
    from shared.lease import Lease, LeaseKeeper
    from shared.message import Message
    from shared.telemetry import Telemetry
    from shared.unit_of_work import ItemStore
    from shared.worker import Worker

CLAIM_MARGIN = timedelta(seconds=1)  # after the invocation's end, for clocks that differ
RESULT_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class _Run:
    """One delivery that could be read, on its way through the pipeline."""

    delivery: Delivery
    message: Message
    job: Job[Any, Any]
    payload: Payload
    record: str
    death: int
    until: datetime


@dataclass(frozen=True, slots=True)
class Execution:
    """Runs the deliveries of one worker. Holds the stores, no state of its own."""

    worker: Worker
    records: JobRecords
    items: ItemStore
    leases: LeaseKeeper
    transport: Transport
    clock: Clock
    random: Random
    tokens: Tokens
    telemetry: Telemetry

    def execute(self, delivery: Delivery, until: datetime) -> Outcome:
        """Run one delivery; `until` is when the invocation ends."""
        begun = self.clock.now()
        try:
            run = self._read(delivery, until)
        except Malformed as error:
            outcome: Outcome = DeadLettered(failure_of(error, begun), _next_death(delivery))
            self._report(delivery, None, outcome, begun)
            return outcome
        except NewerVersion:
            outcome = self._postponed(delivery, Because.NEWER_VERSION)
            self._report(delivery, None, outcome, begun)
            return outcome
        outcome = self._admitted(run)
        self._report(delivery, run, outcome, begun)
        return outcome

    def _read(self, delivery: Delivery, until: datetime) -> _Run:
        message = read_message(delivery.body, delivery.text_attribute(ENCODING_ATTRIBUTE))
        job, payload = typed_payload(message, self.worker.job_types)
        record = record_id(SYSTEM, message.job_type, message.idempotency_key)
        return _Run(delivery, message, job, payload, record, delivery.death, until)

    def _admitted(self, run: _Run) -> Outcome:
        if self.clock.now() + run.job.timeout > run.until - self._reserve():
            return Postponed(timedelta(seconds=1), Because.TOO_LITTLE_TIME)
        lease = None
        if run.job.lock is not None:
            try:
                lease = self.leases.take(run.job.lock(run.payload), self.tokens(), run.job.lease)
            except CacheUnavailable:
                self.telemetry.count("lease_unavailable", run.job.name)
                if run.job.without_lease is WithoutLease.POSTPONE:
                    return self._postponed(run.delivery, Because.CACHE_GONE)
            else:
                if lease is None:
                    return self._postponed(run.delivery, Because.CONTENDED)
        try:
            return self._claimed(run, lease)
        finally:
            self.leases.give_back(lease)

    def _claimed(self, run: _Run, lease: Lease | None) -> Outcome:
        try:
            answer = self.records.claim(self._claim(run), self.clock.now())
        except Unavailable:
            return self._postponed(run.delivery, Because.STORE_UNAVAILABLE)
        match answer:
            case Granted():
                return self._attempt(run, answer, lease)
            case Ended(status=status, tags=tags):
                return self._invalidated(run, tags, lease, Duplicate(status.value))
            case StaleCopy(status=status):
                return Duplicate(status.value)
            case HeldByOther(until=until):
                return Postponed(self._until(until), Because.HELD)
            case TooEarly(not_before=not_before):
                return Postponed(self._until(not_before), Because.TOO_EARLY)
            case Spent():
                return self._buried_as_spent(run, answer)
            case KeyReused():
                error = Malformed("idempotency-key-reused", "the key names a job with another payload")
                return DeadLettered(failure_of(error, self.clock.now()), run.death + 1, names=self._names(run))
            case _:
                assert_never(answer)

    def _attempt(self, run: _Run, granted: Granted, lease: Lease | None) -> Outcome:
        work = UnitOfWork(
            items=self.items,
            transport=self.transport,
            clock=self.clock,
            tokens=self.tokens,
            worker=self.worker.name,
            idempotency_key=run.message.idempotency_key,
            attempt=granted.attempt,
            token=granted.hold.token,
            deadline=min(run.until - self._reserve(), self.clock.now() + run.job.timeout),
            lease=lease,
            uses=run.job.uses,
        )
        try:
            commit = _commit_of(run.job(run.payload, work), work)
            self.records.commit(granted.hold, commit, self.clock.now())
        except OutcomeUnknown as error:
            return self._unknown(run, granted, error)
        except Exception as error:  # noqa: BLE001 - whatever a handler raises is classified here, once
            return self._failed(run, granted, error)
        return self._invalidated(run, commit.tags, lease, Completed(granted.attempt))

    def _failed(self, run: _Run, granted: Granted, error: Exception) -> Outcome:
        """Give the attempt back or spend it; the record is released unless the message is to be dead-lettered."""
        now = self.clock.now()
        match error:
            case ClaimLost():
                return self._postponed(run.delivery, Because.CLAIM_LOST)
            case Postpone(after=after):
                self._release(granted, Release(now + after, gives_attempt_back=True), now)
                return Postponed(after, Because.ASKED)
            case LeaseLost():
                self.telemetry.count("lease_lost", run.job.name)
                after = self._wait(run.delivery)
                self._release(granted, Release(now, gives_attempt_back=True), now)
                return Postponed(after, Because.LEASE_LOST)
        verdict = classify(error)
        failure = failure_of(error, now)
        if is_spent(verdict.kind, granted.attempt, run.job.retry.attempts_for(verdict.kind)):
            return DeadLettered(
                failure,
                run.death + 1,
                attempts=granted.attempt,
                first_failure=granted.first_failure or failure,
                hold=granted.hold,
                names=self._names(run),
            )
        after = verdict.after or run.job.retry.wait(granted.attempt, self.random)
        self._release(granted, Release(now + after, failure), now)
        return Retried(after, failure, granted.attempt)

    def _unknown(self, run: _Run, granted: Granted, error: OutcomeUnknown) -> Outcome:
        """Stop the job and send its reconciling job, in one transaction; nothing that was staged is written."""
        now = self.clock.now()
        try:
            posting = posting_of(error.reconcile, self.tokens(), self.worker.name)
            commit = Commit(Status.UNKNOWN, postings=(posting,), failure=failure_of(error, now))
            self.records.commit(granted.hold, commit, now)
        except Exception as failed:  # noqa: BLE001 - as for every attempt
            return self._failed(run, granted, failed)
        return Unknown()

    def _invalidated(self, run: _Run, tags: tuple[str, ...], lease: Lease | None, outcome: Outcome) -> Outcome:
        """After the commit: drop the tags, give the lease back. The job is done whatever happens here."""
        try:
            self.leases.finish(tags, lease)
        except CacheUnavailable:
            if not tags:
                return outcome
            self.telemetry.count("invalidation_failed", run.job.name)
            return self._postponed(run.delivery, Because.INVALIDATION_FAILED)
        return outcome

    def _release(self, granted: Granted, release: Release, now: datetime) -> None:
        try:
            self.records.release(granted.hold, release, now)
        except (ClaimLost, Unavailable) as error:
            # Another holds it, or the claim ends at its deadline: either way the next delivery finds out.
            self.telemetry.warn("claim_not_released", error=type(error).__name__)

    def _buried_as_spent(self, run: _Run, spent: Spent) -> Outcome:
        failure = spent.last_failure
        if failure is None:
            error = Malformed("attempts-spent", "every attempt ended without a word: crashed, killed or out of time")
            failure = failure_of(error, self.clock.now())
        return DeadLettered(
            failure,
            run.death + 1,
            attempts=spent.attempts,
            first_failure=spent.first_failure,
            hold=spent.hold,
            names=self._names(run),
        )

    def _report(self, delivery: Delivery, run: _Run | None, outcome: Outcome, begun: datetime) -> None:
        """One log line and the metrics of one delivery."""
        name = NO_JOB_TYPE if run is None else run.job.name
        now = self.clock.now()
        result, more = told(outcome)
        self.telemetry.count(result, name)
        self.telemetry.took("duration", name, now - begun)
        if delivery.sent_at is not None and isinstance(outcome, Completed):
            self.telemetry.took("latency", name, now - delivery.sent_at)
        names = {} if run is None else {**self._names(run), "record": run.record}
        names.pop("idempotency_key", None)  # a client's secret, perhaps; the record's id is its hash
        self.telemetry.job(
            result=result,
            worker=self.worker.name,
            message_id=delivery.message_id,
            receive_count=delivery.receive_count,
            duration_ms=int((now - begun).total_seconds() * 1000),
            trace=delivery.trace,
            **names,
            **more,
        )

    def _claim(self, run: _Run) -> Claim:
        return Claim(
            record=run.record,
            owner=SYSTEM,
            job_type=run.job.name,
            idempotency_key=run.message.idempotency_key,
            fingerprint=fingerprint(run.message, run.payload),
            payload=run.message.payload,
            version=run.message.version,
            token=self.tokens(),
            until=run.until + CLAIM_MARGIN,
            max_attempts=run.job.retry.max_attempts,
            death=run.death,
        )

    def _reserve(self) -> timedelta:
        """What an invocation keeps for commit, invalidation and settlement."""
        return self.worker.margin / 2

    def _wait(self, delivery: Delivery) -> timedelta:
        """The wait of a postponed delivery: grows with its receives to a minute, between half of it and all of it."""
        ceiling = min(LONGEST_POSTPONEMENT, SHORTEST_POSTPONEMENT * 2 ** min(delivery.receive_count - 1, 10))
        return timedelta(seconds=ceiling.total_seconds() * self.worker.pace * (0.5 + self.random.random() / 2))

    def _until(self, moment: datetime) -> timedelta:
        """The wait until a moment, a little later, spread."""
        spread = timedelta(seconds=1 + self.random.random())
        return max(moment - self.clock.now(), timedelta(0)) + spread

    def _postponed(self, delivery: Delivery, because: Because) -> Postponed:
        return Postponed(self._wait(delivery), because)

    @staticmethod
    def _names(run: _Run) -> dict[str, str]:
        """By which names people and tools find the job of a dead letter."""
        names = {
            "job_type": run.job.name,
            "idempotency_key": run.message.idempotency_key,
            "operation_id": operation_id(run.record),
        }
        return names if run.message.job_id is None else {**names, "job_id": run.message.job_id}


def _next_death(delivery: Delivery) -> int:
    try:
        return delivery.death + 1
    except Malformed:
        return 1


def _commit_of(result: object, work: UnitOfWork) -> Commit:
    """What a handler's result commits.

    Raises:
        Refused: the result cannot be kept as JSON, or is too large.
    """
    status = Status.FAILED if isinstance(result, Failed) else Status.COMPLETED
    match result:
        case None:
            text = None
        case Failed(code=code, detail=detail):
            text = json_text({"code": code, "detail": detail})
        case BaseModel():
            text = _json_of(result.model_dump(mode="json"))
        case _:
            text = _json_of(result)
    if text is not None and len(text.encode()) > RESULT_BYTES:
        message = f"The result has {len(text.encode())} bytes, {RESULT_BYTES} are kept: return a reference."
        raise Refused(message)
    return Commit(status, text, work.tags, work.writes, work.postings, work.verdicts)


def _json_of(result: object) -> str:
    check_value(json.loads("null") if result is None else result, "the result")
    try:
        return json_text(result)
    except (TypeError, ValueError) as error:
        message = (
            f"The result cannot be kept as JSON ({type(error).__name__}): return str, int, bool, None, list or dict."
        )
        raise Refused(message) from error
