"""Reading a delivery: what it asks for, under which names, and which locks it needs."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shared.claim import Claim
from shared.delivery import ENCODING_ATTRIBUTE
from shared.errors import Malformed
from shared.job import Unique
from shared.job_record import SYSTEM, operation_id, record_id
from shared.trace import read_xray
from shared.wire.parsing import fingerprint, read_message, typed_payload

if TYPE_CHECKING:
    from datetime import datetime

    from shared.delivery import Delivery
    from shared.job import Job, JobTypes
    from shared.message import Message
    from shared.payload import Payload
    from shared.trace import Trace
    from shared.wire.deposits import Deposits


@dataclass(frozen=True, slots=True)
class Run:
    """A delivery that could be read: what it asks for, and until when the invocation lasts."""

    delivery: Delivery
    message: Message
    job: Job[Any, Any]
    payload: Payload
    locks: tuple[str, ...]
    record: str
    death: int
    until: datetime

    @property
    def reopens(self) -> datetime | None:
        """When the message was made, if its key is unique only while a job is active and names no record of its own."""
        if self.job.unique is Unique.FOR_EVER or self.message.record is not None:
            return None
        return self.message.enqueued_at

    @property
    def due_at(self) -> datetime | None:
        """When it could have been done at the earliest: as it was asked for, or as its `run_at` says; None if nothing tells.

        What was replayed could be done since its replay.
        """
        moments = (None if self.death else self.message.enqueued_at, self.delivery.sent_at)
        asked = [moment for moment in moments if moment is not None]
        known = [moment for moment in (min(asked, default=None), self.message.run_at) if moment is not None]
        return max(known, default=None)

    def claim(self, token: str, until: datetime) -> Claim:
        """The request to hold the job for one more attempt of that name, until then."""
        message = self.message
        return Claim(
            record=self.record,
            owner=SYSTEM,
            job_type=self.job.name,
            idempotency_key=message.idempotency_key,
            fingerprint=fingerprint(message, self.payload, self.job.version),
            payload=message.payload,
            version=message.version,
            token=token,
            until=until,
            max_attempts=self.job.retry.max_attempts,
            death=self.death,
            accepted=message.record is not None,
            job_id=message.job_id,
            trace=None if self.trace is None else self.trace.header,
            reopens=self.reopens,
            run_at=message.run_at,
        )

    @property
    def resources(self) -> tuple[str, ...]:
        """The lock keys as hashes, which tell that two jobs were about one thing and not about which."""
        return tuple(hashlib.sha256(key.encode()).hexdigest()[:16] for key in self.locks)

    @property
    def trace(self) -> Trace | None:
        """The trace that the message names, or that X-Ray has carried beside it."""
        return self.message.trace or read_xray(self.delivery.trace)

    @property
    def names(self) -> dict[str, str]:
        """By which names people and tools find the job."""
        names = {
            "job_type": self.job.name,
            "idempotency_key": self.message.idempotency_key,
            "operation_id": operation_id(self.record),
        }
        if self.message.job_id is not None:
            names["job_id"] = self.message.job_id
        if self.trace is not None:
            names["trace_id"] = self.trace.trace_id
        return names


def read_run(delivery: Delivery, job_types: JobTypes, until: datetime, deposits: Deposits | None = None) -> Run:
    """Read a delivery.

    Raises:
        Malformed: it can never run.
        NewerVersion: a later deploy will know its payload.
        Unavailable: its payload is deposited, and the store did not answer.
    """
    death = delivery.death
    message = read_message(delivery.body, delivery.text_attribute(ENCODING_ATTRIBUTE))
    job, payload = typed_payload(message, job_types, deposits)
    locks = lock_keys(job, payload)
    record = message.record or record_id(SYSTEM, message.job_type, message.idempotency_key)
    return Run(delivery, message, job, payload, locks, record, death, until)


def lock_keys(job: Job[Any, Any], payload: Payload) -> tuple[str, ...]:
    """The lock keys of a payload, each once, in the order in which everybody takes them.

    Raises:
        Malformed: the job's own code fails on this payload, or gives no key.
    """
    if job.lock is None:
        return ()
    try:
        given = job.lock(payload)
    except Exception as error:
        raise Malformed("invalid-lock-key", f"the lock of {job.name} failed: {type(error).__name__}") from error
    keys = (given,) if isinstance(given, str) else given
    if not isinstance(keys, tuple) or not keys or not all(isinstance(key, str) and key for key in keys):
        raise Malformed("invalid-lock-key", f"the lock of {job.name} gave no key but {type(given).__name__}")
    return tuple(sorted(set(keys)))
