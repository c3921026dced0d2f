"""Parses the envelope on the queue, which every producer sends, in any language: strictly, and to a typed payload.

A body that can never run raises Malformed with a stable reason; nothing here knows SQS or a particular job.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from shared.clock import to_millis
from shared.declaring.upgrading import upgraded
from shared.errors import Malformed, NewerVersion, SettingsError
from shared.message import FORMAT, KEY_LENGTH, TENANT_LENGTH, Message, check_key, check_payload, check_run_at
from shared.payload import describe
from shared.strict_json import fractions_as_text, json_text, read_json, written
from shared.trace import read_trace
from shared.wire.deposits import Mark
from shared.wire.wrapping import unwrapped

if TYPE_CHECKING:
    from shared.job import Job, JobTypes
    from shared.payload import Payload
    from shared.wire.deposits import Deposits


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
    tenant: Annotated[str | None, Field(min_length=1, max_length=TENANT_LENGTH)] = None  # since format 2
    traceparent: Any = None  # what cannot be read costs the trace, not the job


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
    _, text = read_json(deposits.whole(payload))  # as strict as for one that travels
    return text


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
