"""Payloads as operators may see them: what their schema masks stays masked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from functions.registry import WORKERS
from shared.declaring.masked import masked
from shared.strict_json import json_text
from shared.wire.deposits import Mark

if TYPE_CHECKING:
    from pydantic import BaseModel


def schema_of(job_type: str) -> type[BaseModel] | None:
    """The schema of a job type's payload, where it is declared."""
    return next((job.payload for worker in WORKERS for job in worker.jobs if job.name == job_type), None)


def shown_payload(job_type: str, payload: str) -> str:
    """A payload's JSON text as it may be shown; of one that is deposited, where."""
    mark = Mark.read(payload)
    if mark is not None:
        return json_text({"deposit": {"sha256": mark.sha256, "bytes": mark.size}})
    return masked(payload, schema_of(job_type))
