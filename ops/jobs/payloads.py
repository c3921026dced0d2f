"""Payloads as operators may see them: what their schema masks stays masked, and why one would be refused is told without its values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from functions.registry import JOB_TYPES
from shared.declaring.masked import masked
from shared.strict_json import json_text
from shared.wire.deposits import Mark

if TYPE_CHECKING:
    from typing import Any

    from pydantic import BaseModel

    from shared.errors import Malformed
    from shared.job import Job


def schema_of(job_type: str) -> type[BaseModel] | None:
    """The schema of a job type's payload, where it is declared."""
    job = JOB_TYPES.by_name.get(job_type)
    return None if job is None else job.payload


def shown_payload(job_type: str, payload: str) -> str:
    """A payload's JSON text as it may be shown; of one that is deposited, where."""
    mark = Mark.read(payload)
    if mark is not None:
        return json_text({"deposit": {"sha256": mark.sha256, "bytes": mark.size}})
    return masked(payload, schema_of(job_type))


def refusal(job: Job[Any, Any], error: Malformed) -> str:
    """What the consumer would have made a dead letter of; values are not repeated."""
    if error.reason != "invalid-payload":
        return f"{job.name} would be refused: {error.reason}: {error.detail}"
    problems = "".join(f"\n  {problem}" for problem in error.detail.split("; "))
    declared = ", ".join(
        f"{name}{'' if field.is_required() else ' (may be left out)'}"
        for name, field in job.payload.model_fields.items()
    )
    return f"The payload of {job.name} would be refused:{problems}\nIts fields: {declared or 'none'}"
