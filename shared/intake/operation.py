"""An operation: a job as its client sees it. Only what is listed here ever leaves the front door."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from shared.job_record import Status
from shared.parts import Tally
from shared.wire.deposits import Mark

if TYPE_CHECKING:
    from datetime import datetime

    from shared.commit import Progress
    from shared.job_record import JobView

_ID = re.compile(r"op_([0-9a-f]{64})")


class OperationStatus(StrEnum):
    """How far it is."""

    PENDING = "pending"
    RUNNING = "running"
    RETRYING = "retrying"
    DONE = "done"
    FAILED = "failed"  # by a rule of the business, which its error names
    CANCELLED = "cancelled"
    DEAD_LETTERED = "dead-lettered"  # people look at it
    UNKNOWN = "unknown"  # whether an outside effect happened; it is being found out


OF_JOB = {
    Status.ACCEPTED: OperationStatus.PENDING,
    Status.RUNNING: OperationStatus.RUNNING,
    Status.RETRYING: OperationStatus.RETRYING,
    Status.COMPLETED: OperationStatus.DONE,
    Status.FAILED: OperationStatus.FAILED,
    Status.CANCELLED: OperationStatus.CANCELLED,
    Status.DEAD_LETTERED: OperationStatus.DEAD_LETTERED,
    Status.UNKNOWN: OperationStatus.UNKNOWN,
    Status.WAITING: OperationStatus.RUNNING,
}
FINAL = frozenset({OperationStatus.DONE, OperationStatus.FAILED, OperationStatus.CANCELLED})


@dataclass(frozen=True, slots=True)
class Operation:
    """What a client may know of its job.

    Attributes:
        result: of a job that is done, as parsed JSON; without one that is deposited, unless who reads the record fetched it.
        run_at: before which a pending one does not run.
        parts: of a job that is split: what became of them so far; a replayed one may change it after the job's end.
        cancelling: whether it is to end although it has begun.
        progress: how far a job is that tells so, or was when it told last.
        error: code (and detail, if the job gives one) of a job that failed, or the reason of a dead letter.
    """

    operation_id: str
    job_type: str
    status: OperationStatus
    result: object = None
    error: dict[str, object] | None = None
    run_at: datetime | None = None
    progress: Progress | None = None
    parts: Tally | None = None
    cancelling: bool = False

    @property
    def is_final(self) -> bool:
        """Whether it will not change any more by itself."""
        return self.status in FINAL


def operation_of(view: JobView, now: datetime) -> Operation:
    """A job record as its owner sees it. It is running while its attempt keeps its claim: one that died is retried."""
    status = OF_JOB[view.status]
    if view.status is Status.RUNNING and view.claim_until is not None and not view.is_held(now):
        status = OperationStatus.RETRYING
    result = None if view.result is None or Mark.read(view.result) is not None else json.loads(view.result)
    error: dict[str, object] | None = None
    if status is OperationStatus.FAILED:
        error, result = result if isinstance(result, dict) else {"code": "failed"}, None
    elif status is OperationStatus.DEAD_LETTERED:
        error = {"code": "dead-lettered" if view.last_failure is None else view.last_failure.reason}
    waits = view.not_before if status is OperationStatus.PENDING else None
    names = view.names
    parts = None if view.split is None else view.tally or Tally(view.split.parts)
    ends = view.cancelling and status not in FINAL
    return Operation(names["operation_id"], names["job_type"], status, result, error, waits, view.progress, parts, ends)


def record_of(operation_id: str) -> str | None:
    """The record's key of an operation; None if it cannot be one."""
    found = _ID.fullmatch(operation_id)
    return None if found is None else found.group(1)
