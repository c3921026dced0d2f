"""A client's request for a job, from its text to its acceptance. Knows no HTTP: the front door puts statuses to it.

The owner comes from the verified identity of the caller, never from the request. What SQS or DynamoDB would refuse later
is refused here, before anything is written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shared.acceptance import Acceptance, Accepted, OtherPayload
from shared.errors import Malformed
from shared.job_record import record_id
from shared.message import Message, check_key, check_payload, fingerprint, typed_payload
from shared.operation import operation_of, record_of
from shared.outbox import posting_of
from shared.strict_json import read_json, written

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shared.acceptance import AcceptsJobs
    from shared.clock import Surroundings
    from shared.job import Job, JobTypes
    from shared.job_record import JobRecords
    from shared.operation import Operation

BODY_BYTES = 256 * 1024


class UnknownJobType(Malformed):
    """No job type of that name is open to clients."""


class TooLarge(Malformed):
    """The body is larger than what is kept."""


class OtherPayloadForKey(Malformed):
    """The key was used for another payload."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a client is told about its request."""

    operation: Operation
    replayed: bool


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

    def accept(self, owner: str, job_type: str, key: str | None, body: str) -> Receipt:
        """Accept a job for its owner, or find the one that was accepted under this key.

        Raises:
            UnknownJobType: nothing of that name is open.
            Malformed: the key or the payload; its reason is stable, its detail names fields and no values.
            TooLarge: the body.
            OtherPayloadForKey: the key names a job with another payload.
            Unavailable: nothing is accepted, or all of it; the same request tells.
        """
        job = self.job_types.by_name.get(job_type)
        if job is None:
            raise UnknownJobType("unknown-job-type", "no such job type is open here")
        message = self._message(job, owner, check_key(key), body)
        answer = self.accepts.accept(self._acceptance(job, owner, message), self.here.clock.now())
        if isinstance(answer, OtherPayload):
            raise OtherPayloadForKey("idempotency-key-reused", "this key was used with another payload: take a new key")
        return Receipt(operation_of(answer.view), replayed=not isinstance(answer, Accepted))

    def look(self, owner: str, operation_id: str) -> Operation | None:
        """The owner's operation, read consistently; None if there is none, or it is another's.

        Raises:
            Unavailable: the store did not answer.
        """
        record = record_of(operation_id)
        view = None if record is None else self.records.view(record)
        if view is None or view.names.get("owner") != owner:
            return None
        return operation_of(view)

    def cancel(self, owner: str, operation_id: str) -> Operation | None:
        """Cancel the owner's operation if nothing works on it now, and give it as it is then; None as for `look`.

        Raises:
            Unavailable: the store did not answer; it may be cancelled, and the same request tells.
        """
        record = record_of(operation_id)
        view = None if record is None else self.accepts.cancel(record, owner, self.here.clock.now())
        return None if view is None else operation_of(view)

    def _message(self, job: Job[Any, Any], owner: str, key: str, body: str) -> Message:
        size = len(body.encode(errors="surrogatepass"))
        if size > BODY_BYTES:
            raise TooLarge("payload-too-large", f"{size} bytes: {BODY_BYTES} are taken")
        parsed, _ = read_json(body)
        if not isinstance(parsed, dict):
            raise Malformed("malformed-json", f"an object is expected, not a {type(parsed).__name__}")
        payload = written(parsed)
        check_payload(payload)
        record = record_id(owner, job.name, key)
        return Message(job.name, job.version, key, payload, enqueued_at=self.here.clock.now(), record=record)

    def _acceptance(self, job: Job[Any, Any], owner: str, message: Message) -> Acceptance:
        _, payload = typed_payload(message, self.job_types)
        token = self.here.tokens()
        return Acceptance(
            record=record_id(owner, job.name, message.idempotency_key),
            owner=owner,
            job_type=job.name,
            idempotency_key=message.idempotency_key,
            fingerprint=fingerprint(message, payload),
            payload=message.payload,
            version=message.version,
            token=token,
            posting=posting_of(message, token, self.workers[job.name], group=None),
        )
