"""The envelope on the queue: what every producer sends, in any language. Reads it strictly, writes it so that any text passes.

A body that can never run raises Malformed with a stable reason; nothing here knows SQS or a particular job.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from shared.clock import to_millis
from shared.deposits import LARGEST_BYTES, Mark
from shared.errors import Malformed, NewerVersion, SettingsError
from shared.fairness import LONGEST_TENANT
from shared.limits import PAYLOAD_BYTES
from shared.payload import describe
from shared.strict_json import fractions_as_text, json_text, read_json, written
from shared.trace import TRACEPARENT, read_trace
from shared.upgrading import upgraded
from shared.wrapping import unwrapped

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from shared.clock import Tokens
    from shared.deposits import Deposits
    from shared.job import Job, JobTypes
    from shared.payload import Payload
    from shared.trace import Trace

FORMAT = 3  # of the envelope; a message that uses what an earlier one does not know says so, and waits where only that is known
TENANT_FORMAT = 2  # the first that knows `tenant`
DEPOSIT_FORMAT = 3  # the first that knows `deposit`
KEY_LENGTH = 255
YEARS = range(1970, 9999)
_PRINTABLE = re.compile(r"[!-~](?:[ -~]*[!-~])?")


class _Deposit(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    bytes: Annotated[int, Field(ge=1)]


class _Envelope(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    job_type: Annotated[str, Field(min_length=1, max_length=100)]
    format: Annotated[int, Field(ge=1)] = 1
    version: Annotated[int, Field(ge=1)] = 1
    idempotency_key: str
    payload: dict[str, Any] | None = None
    deposit: _Deposit | None = None  # since format 3, in the place of a payload that is too large to travel
    job_id: Annotated[str | None, Field(min_length=1, max_length=KEY_LENGTH)] = None
    enqueued_at: AwareDatetime | None = None
    record: Annotated[str | None, Field(pattern=r"^[0-9a-f]{64}$")] = None
    run_at: AwareDatetime | None = None
    tenant: Annotated[str | None, Field(min_length=1, max_length=LONGEST_TENANT)] = None  # since format 2
    traceparent: Any = None  # what cannot be read costs the trace, not the job


@dataclass(frozen=True, slots=True)
class Message:
    """A job on its way: what to run, with which payload (as JSON text), under which idempotency key.

    A payload that is too large to travel is deposited in S3, and its mark stands in its place (see shared/deposits.py).
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
    parsed, _ = read_json(text)
    if not isinstance(parsed, dict):
        raise Malformed("malformed-json", f"an object is expected, not a {type(parsed).__name__}")
    return written(parsed)


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


def read_message(body: str, encoding: str | None = None) -> Message:
    """Read the envelope from a message's body, out of what SNS or EventBridge put around it.

    Args:
        body: text as SQS delivers it.
        encoding: value of the attribute `content-encoding`; only what it names is decoded, nothing is guessed.

    Raises:
        Malformed: unknown-encoding, malformed-encoding, malformed-json, unknown-wrapping, invalid-envelope, missing-idempotency-key,
            invalid-idempotency-key, payload-too-large, invalid-run-at.
        NewerVersion: a later deploy will know its format.
    """
    parsed, text = unwrapped(body, encoding)
    if type(parsed.get("format")) is int and parsed["format"] > FORMAT:
        error = f"The envelope's format {parsed['format']} is newer than {FORMAT}, it waits for a deploy."
        raise NewerVersion(error)
    check_key(parsed.get("idempotency_key"))
    try:
        envelope = _Envelope.model_validate_json(text)
    except ValidationError as error:
        raise Malformed("invalid-envelope", describe(error)) from error
    if (envelope.payload is None) == (envelope.deposit is None):
        raise Malformed("invalid-envelope", "payload: give it, or the `deposit` that holds it")
    check_run_at(envelope.run_at)
    if envelope.deposit is not None:
        payload = str(Mark(envelope.deposit.sha256, envelope.deposit.bytes))
    else:
        payload = written(parsed["payload"])
    check_payload(payload)
    return Message(
        job_type=envelope.job_type,
        version=envelope.version,
        idempotency_key=envelope.idempotency_key,
        payload=payload,
        job_id=envelope.job_id,
        enqueued_at=envelope.enqueued_at,
        record=envelope.record,
        run_at=envelope.run_at,
        trace=read_trace(envelope.traceparent),
        tenant=envelope.tenant,
    )


def legible(body: str, encoding: str | None) -> Message | None:
    """The message as `read_message` reads it; None if it cannot be read, now or before a deploy."""
    try:
        return read_message(body, encoding)
    except (Malformed, NewerVersion):
        return None


def typed_payload(
    message: Message, job_types: JobTypes, deposits: Deposits | None = None
) -> tuple[Job[Any, Any], Payload]:
    """Find the job type, bring the payload to its current version, and validate it by the schema.

    Raises:
        Malformed: unknown-job-type, schema-unsupported (older than what is known here), upgrade-failed, invalid-payload,
            deposit-gone.
        NewerVersion: a later deploy will know it.
        Unavailable: it is deposited, and the store did not answer.
        SettingsError: it is deposited, and nobody said where.
    """
    job = job_types.by_name.get(message.job_type)
    if job is None:
        known = ", ".join(sorted(job_types.by_name))
        raise Malformed("unknown-job-type", f"this worker runs {known}, not {message.job_type!r}")
    if message.version > job.version:
        error = f"{job.name}: payload version {message.version} is newer than {job.version}, it waits for a deploy."
        raise NewerVersion(error)
    if message.version < job.oldest:
        raise Malformed(
            "schema-unsupported", f"{job.name}: version {message.version} is no longer read, {job.oldest} and later are"
        )
    text = upgraded(job, message.version, _whole(message.payload, deposits))
    try:
        payload = job.payload.model_validate_json(text)
        if "." in text or "e" in text or "E" in text:
            payload = job.payload.model_validate_json(fractions_as_text(text))
    except ValidationError as error:
        raise Malformed("invalid-payload", describe(error)) from error
    return job, payload


def _whole(payload: str, deposits: Deposits | None) -> str:
    if Mark.read(payload) is None:
        return payload
    if deposits is None:
        error = "The payload is deposited, and this function knows no bucket of deposits: deploy it through infra, which sets it."
        raise SettingsError(error)
    whole = deposits.whole(payload)
    parsed, _ = read_json(whole)  # as strict as for one that travels
    return written(parsed)


def fingerprint(message: Message, payload: Payload, version: int | None = None) -> str:
    """Hash of the canonical payload and of the millisecond before which it must not run, led by how it was read.

    That is the message's version and, where the payload was upgraded, the `version` that it has now: fingerprints are compared
    only if both are the same, so neither a copy in another version nor a deploy between two copies makes another payload.

    Canonical is what the schema made of it, without what equals its default: order of keys, blanks, 10 against 10.0 and
    a field added with a default make no difference. Unicode is compared code point by code point, so two forms of one
    accented letter are two payloads.
    """
    canonical = json_text(payload.model_dump(mode="json", exclude_defaults=True))
    if message.run_at is not None:
        canonical = f"{canonical}@{to_millis(message.run_at)}"  # as the job record keeps it, which may ask for it again
    read = f"{message.version}" if version in {None, message.version} else f"{message.version}>{version}"
    return f"{read}:{hashlib.sha256(canonical.encode()).hexdigest()}"
