"""A client's request for a job, from its text to its acceptance. Knows no HTTP: the front door puts statuses to it.

The owner comes from the verified identity of the caller, never from the request. What SQS or DynamoDB would refuse later
is refused here, before anything is written.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from shared.errors import Malformed, Refused, StoreUnavailable, TahanError
from shared.intake.acceptance import Acceptance, Accepted, OtherPayload, Overtaken, Replayed
from shared.intake.operation import operation_of, record_of
from shared.job import Unique
from shared.job_record import OVER, record_id
from shared.message import Message, canonical, check_key, check_payload, check_run_at
from shared.outbox import check_schedule, posting_of
from shared.trace import begun
from shared.wire.deposits import LARGEST_BYTES, Mark, check_deposit_schedule
from shared.wire.parsing import fingerprint, typed_payload

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from shared.clock import Surroundings
    from shared.intake.acceptance import AcceptsJobs
    from shared.intake.operation import Operation
    from shared.job import Job, JobTypes
    from shared.job_record import JobView
    from shared.job_records import JobRecords
    from shared.trace import Trace
    from shared.wire.deposits import Deposits

BODY_BYTES = LARGEST_BYTES
FIRST_VERSION = 1
TRIES = 5  # generations of one key that are tried before the client is asked to come again
_REUSED = ("idempotency-key-reused", "this key was used with another payload: take a new key")


class UnknownJobType(Malformed):
    """No job type of that name is open to clients."""


class TooLarge(Malformed):
    """The body is larger than what is kept."""


class OtherPayloadForKey(Malformed):
    """The key was used for another payload."""


class Absent(Malformed):
    """What the request is about is not there, or is another's."""


class Outdated(TahanError):  # noqa: N818
    """The request rests on another version of what it is about than the current one: look again; nothing was written."""

    def __init__(self, etag: str | None) -> None:
        super().__init__("the version is no longer current")
        self.etag = etag


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a client is told about its request; and the trace of that request, for the log."""

    operation: Operation
    replayed: bool
    trace_id: str | None = None


@dataclass(frozen=True, slots=True)
class Intake:
    """Accepts jobs of the types that are open to clients.

    Attributes:
        job_types: those that are open.
        workers: the worker of each, by job type.
    """

    job_types: JobTypes
    workers: Mapping[str, str]
    accepts: AcceptsJobs
    records: JobRecords
    here: Surroundings
    deposits: Deposits | None = None

    def accept(  # noqa: PLR0913 - each is a part of the request
        self,
        owner: str,
        job_type: str,
        key: str | None,
        body: str,
        *,
        version: int = FIRST_VERSION,
        run_at: datetime | None = None,
        trace: Trace | None = None,
        condition: Callable[[Any], None] | None = None,
    ) -> Receipt:
        """Accept a job for its owner, or find the one that was accepted under this key.

        `version` is that of the payload, as in a message the first one by default: a client that never heard of versions goes
        on as it is. Earlier ones are read as they are from a queue.
        `condition` gets the typed payload and raises what keeps the job from being accepted. It is looked at before the
        acceptance and not with it: the job's own commit demands that what it reads is unchanged.

        Raises:
            Outdated, Absent: the condition says so, and no job was accepted under this key.
            UnknownJobType: nothing of that name is open.
            Malformed: the key, the payload, its version or `run_at`; its reason is stable, its detail names fields and no values.
            TooLarge: the body.
            OtherPayloadForKey: the key names a job with another payload.
            Unavailable: nothing is accepted, or all of it; the same request tells.
        """
        job = self.job_types.by_name.get(job_type)
        if job is None:
            raise UnknownJobType("unknown-job-type", "no such job type is open here")
        if version > job.version:  # on a queue it would wait for a deploy; a client can ask again
            raise Malformed("schema-unsupported", f"version {version} is not known yet, {job.version} is")
        now = self.here.clock.now()
        message = Message(
            job.name,
            version,
            check_key(key),
            _payload(body),
            enqueued_at=now,
            run_at=run_at,
            trace=trace or begun(self.here.tokens),
            tenant=owner,  # whose turn it takes; the owner itself is in the record alone
        )
        check_run_at(run_at)
        check_schedule(message, now)
        _, payload = typed_payload(message, self.job_types)
        asked = _Asked(job, owner, message, fingerprint(message, payload, job.version))
        if condition is not None:
            self._demand(condition, payload, asked)
        asked = replace(asked, message=self._fitted(message, now))
        return self._accept_generation(asked, now) if job.unique is Unique.WHILE_ACTIVE else self._accept(asked, now)

    def _accept(self, asked: _Asked, now: datetime) -> Receipt:
        answer = self.accepts.accept(self._acceptance(asked, 0, now), now)
        if not isinstance(answer, Accepted | Replayed):
            raise OtherPayloadForKey(*_REUSED)
        return asked.receipt(answer, now)

    def _accept_generation(self, asked: _Asked, now: datetime) -> Receipt:
        """Find the job that is active under this key, or accept the next."""
        generation = self.accepts.generation(asked.record(0))
        for _ in range(TRIES):
            answer = self.accepts.accept(self._acceptance(asked, generation, now), now)
            match answer:
                case Overtaken():
                    generation = self.accepts.generation(asked.record(0))
                case Replayed(view=view) | OtherPayload(view=view) if view.status in OVER:
                    generation += 1
                case OtherPayload():
                    raise OtherPayloadForKey(*_REUSED)
                case Accepted() | Replayed():
                    return asked.receipt(answer, now)
        message = "Other requests with the same key get in the way."
        raise StoreUnavailable(message)

    def _demand(self, condition: Callable[[Any], None], payload: object, asked: _Asked) -> None:
        """Return if the condition holds, or if the key is known: whoever repeats a request gets the answer that it missed.

        In this order: the job of this very key may be what has changed the version, also a moment ago.
        """
        try:
            condition(payload)
        except (Absent, Outdated):
            while_active = asked.job.unique is Unique.WHILE_ACTIVE
            generation = self.accepts.generation(asked.record(0)) if while_active else 0
            known = self.records.view(asked.record(generation))
            if known is None or (while_active and known.status in OVER):
                raise

    def look(self, owner: str, operation_id: str) -> Operation | None:
        """The owner's operation, read consistently; None if there is none, or it is another's.

        Raises:
            Unavailable: the store did not answer.
        """
        record = record_of(operation_id)
        view = None if record is None else self.records.view(record)
        if view is None or view.names.get("owner") != owner:
            return None
        return operation_of(self._whole(view), self.here.clock.now())

    def _whole(self, view: JobView) -> JobView:
        """The record with its result, which may have been deposited; without it, if it is gone."""
        if self.deposits is None or Mark.read(view.result) is None or view.result is None:
            return view
        try:
            return replace(view, result=self.deposits.whole(view.result))
        except Malformed:
            return replace(view, result=None)

    def _fitted(self, message: Message, now: datetime) -> Message:
        """The message with its payload deposited, if it is too large to travel; then the request is sound, but not accepted yet.

        Raises:
            Malformed: payload-too-large, or invalid-run-at, where it would have to be kept for too long.
            Unavailable: the store did not answer.
        """
        if self.deposits is None:
            check_payload(message.payload)
            return message
        payload = self.deposits.fit(message.payload)
        try:
            check_deposit_schedule(payload, message.wait(now))
        except Refused as error:
            raise Malformed("invalid-run-at", str(error)) from error
        return replace(message, payload=payload)

    def cancel(self, owner: str, operation_id: str) -> Operation | None:
        """Cancel the owner's operation if it has not begun, and give it as it is then; None as for `look`.

        Raises:
            Unavailable: the store did not answer; it may be cancelled, and the same request tells.
        """
        record = record_of(operation_id)
        view = None if record is None else self.accepts.cancel(record, owner, self.here.clock.now())
        return None if view is None else operation_of(view, self.here.clock.now())

    def _acceptance(self, asked: _Asked, generation: int, now: datetime) -> Acceptance:
        message = replace(asked.message, record=asked.record(generation))
        token = self.here.tokens()
        return Acceptance(
            record=asked.record(generation),
            owner=asked.owner,
            job_type=message.job_type,
            idempotency_key=message.idempotency_key,
            fingerprint=asked.fingerprint,
            payload=message.payload,
            version=message.version,
            token=token,
            posting=posting_of(message, token, self.workers[message.job_type], delay=message.wait(now), group=None),
            run_at=message.run_at,
            trace=None if message.trace is None else message.trace.header,
            base=asked.record(0) if asked.job.unique is Unique.WHILE_ACTIVE else None,
            generation=generation,
        )


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request that could be read."""

    job: Job[Any, Any]
    owner: str
    message: Message
    fingerprint: str

    def receipt(self, answer: Accepted | Replayed, now: datetime) -> Receipt:
        """What the client is told."""
        trace_id = None if self.message.trace is None else self.message.trace.trace_id
        return Receipt(operation_of(answer.view, now), isinstance(answer, Replayed), trace_id)

    def record(self, generation: int) -> str:
        """The job record of that generation of the key."""
        return record_id(self.owner, self.message.job_type, self.message.idempotency_key, generation)


def _payload(body: str) -> str:
    """The canonical text of a payload.

    Raises:
        Malformed: it is no JSON object.
        TooLarge: it is larger than what is kept.
    """
    size = len(body.encode(errors="surrogatepass"))
    if size > BODY_BYTES:
        raise TooLarge("payload-too-large", f"{size} bytes: {BODY_BYTES} are taken")
    return canonical(body)
