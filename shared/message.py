"""The message: a job on its way. Writes its envelope so that any text passes, and checks what an envelope may hold.

Nothing here knows SQS or a particular job, nor how an envelope is read (see shared/wire/parsing.py).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, timedelta
from typing import TYPE_CHECKING

from shared.errors import Malformed
from shared.limits import PAYLOAD_BYTES
from shared.strict_json import json_text, read_json
from shared.trace import TRACEPARENT
from shared.wire.deposits import LARGEST_BYTES, Mark

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from shared.clock import Tokens
    from shared.trace import Trace

FORMAT = 3  # of the envelope; a message that uses what an earlier one does not know says so, and waits where only that is known
TENANT_FORMAT = 2  # the first that knows `tenant`
DEPOSIT_FORMAT = 3  # the first that knows `deposit`
KEY_LENGTH = 255
TENANT_LENGTH = 1024
YEARS = range(1970, 9999)
_PRINTABLE = re.compile(r"[!-~](?:[ -~]*[!-~])?")


@dataclass(frozen=True, slots=True)
class Message:
    """A job on its way: what to run, with which payload (as JSON text), under which idempotency key.

    A payload that is too large to travel is deposited in S3, and its mark stands in its place (see shared/wire/deposits.py).
    `job_id` is the producer's own name for it and decides nothing; two messages with one key are one job. `record` names the
    job record that the front door wrote when it accepted the job; without it the record is found by the key. Before `run_at`
    the job does not run. `trace` is that of what asked for it. `tenant` is for whom it is done, as far as turns on a queue go.
    """

    job_type: str
    version: int
    idempotency_key: str
    payload: str
    job_id: str | None = None
    enqueued_at: datetime | None = None
    record: str | None = None
    run_at: datetime | None = None
    trace: Trace | None = None
    tenant: str | None = None

    def wait(self, now: datetime) -> timedelta:
        """Time until it may run."""
        return timedelta(0) if self.run_at is None else max(self.run_at - now, timedelta(0))

    def stamped(self, tokens: Tokens, now: datetime, trace: Callable[[], Trace | None]) -> Message:
        """The message with a name and a time, by which its copies are told from another request, and a trace.

        What it has of its own stays.
        """
        return replace(
            self,
            job_id=self.job_id or tokens(),
            enqueued_at=self.enqueued_at or now,
            trace=self.trace or trace(),
        )

    def body(self) -> str:
        """The JSON text to send; what SQS would refuse in it is escaped."""
        envelope: dict[str, object] = {
            "job_type": self.job_type,
            "version": self.version,
            "idempotency_key": self.idempotency_key,
        }
        if self.job_id is not None:
            envelope["job_id"] = self.job_id
        if self.enqueued_at is not None:
            envelope["enqueued_at"] = _written(self.enqueued_at)
        if self.record is not None:
            envelope["record"] = self.record
        if self.run_at is not None:
            envelope["run_at"] = _written(self.run_at)
        if self.tenant is not None:
            envelope["format"], envelope["tenant"] = TENANT_FORMAT, self.tenant
        if (mark := Mark.read(self.payload)) is not None:
            envelope["format"], envelope["deposit"] = DEPOSIT_FORMAT, {"sha256": mark.sha256, "bytes": mark.size}
        if self.trace is not None:
            envelope[TRACEPARENT] = self.trace.header
        if mark is not None:
            return json_text(envelope)
        return f'{json_text(envelope)[:-1]},"payload":{self.payload}}}'


def _written(moment: datetime) -> str:
    """A moment in UTC: Python has zones that are seconds apart, which no reader of RFC 3339 takes."""
    return moment.astimezone(UTC).isoformat()


def check_key(key: object) -> str:
    """Give the idempotency key, or refuse it: 1 to 255 printable ASCII characters, no blank at either end.

    Raises:
        Malformed: missing-idempotency-key or invalid-idempotency-key.
    """
    if key is None or (isinstance(key, str) and not key.strip()):
        raise Malformed("missing-idempotency-key", "give `idempotency_key`: the name of the intent, not of the message")
    if not isinstance(key, str) or len(key) > KEY_LENGTH or not _PRINTABLE.fullmatch(key):
        raise Malformed("invalid-idempotency-key", f"give 1 to {KEY_LENGTH} printable ASCII characters")
    return key


def check_run_at(moment: datetime | None) -> None:
    """Refuse a moment that cannot be reckoned with in every zone.

    Raises:
        Malformed: invalid-run-at.
    """
    if moment is not None and moment.year not in YEARS:
        raise Malformed("invalid-run-at", f"give a year from {YEARS[0]} to {YEARS[-1]}")


def canonical(text: str) -> str:
    """The canonical text of a payload.

    Raises:
        Malformed: it is no JSON object.
    """
    parsed, payload = read_json(text)
    if not isinstance(parsed, dict):
        raise Malformed("malformed-json", f"an object is expected, not a {type(parsed).__name__}")
    return payload


def payload_of(text: str) -> str:
    """The canonical text of a payload that travels.

    Raises:
        Malformed: it is no JSON object, or more than the job record keeps.
    """
    payload = canonical(text)
    check_payload(payload)
    return payload


def check_payload(payload: str) -> None:
    """Refuse a payload that the job record could not keep.

    Raises:
        Malformed: payload-too-large.
    """
    mark = Mark.read(payload)
    size, most = (len(payload.encode()), PAYLOAD_BYTES) if mark is None else (mark.size, LARGEST_BYTES)
    if size > most:
        raise Malformed("payload-too-large", f"{size} bytes, {most} are kept: send a reference to the large part")
