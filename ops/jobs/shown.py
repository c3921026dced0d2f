"""One job as it is shown: found by its name, described, told in full. Nothing personal is told unless it is asked for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ops.exits import CommandError, Exit
from ops.explained import explained
from ops.jobs.payloads import shown_payload
from ops.jobs.watching import told
from ops.tables import text_of
from shared.intake.operation import OperationStatus, operation_of
from shared.trace import read_trace

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from ops.jobs.job_records import Seen
    from ops.stack.deployed import Deployed
    from ops.tools import Tools
    from shared.job_record import JobView
    from shared.outcome import Failure
    from shared.parts import Tally

ID = re.compile("(?:op_)?([0-9a-f]{64})")


def record_named(text: str) -> str:
    """The key of the job record that an operation id names.

    Raises:
        CommandError: it is no operation id.
    """
    found = ID.fullmatch(text)
    if found is None:
        message = f"{text!r} is no operation id: those are op_ and 64 hexadecimal digits."
        raise CommandError(message, Exit.REFUSED)
    return found[1]


def job_named(name: str, tools: Tools, stack: Deployed) -> Seen:
    """The job of an operation id or a record's key.

    Raises:
        CommandError: there is none, or the store cannot be asked.
    """
    record = record_named(name)
    with explained():
        seen = tools.jobs(stack.jobs_table).look(record)
    if seen is None:
        message = (
            "There is no such job: it was never accepted, no worker has begun it yet, or it ended over 30 days ago."
        )
        raise CommandError(message, Exit.ABSENT)
    return seen


def name_of(view: JobView) -> str:
    """The operation id of a job; of one that has none, its record's key."""
    return view.names.get("operation_id", view.record)


def described(seen: Seen, now: datetime, *, whole: bool) -> Mapping[str, object]:
    """What is shown of a job. Its key, payload and result may hold what is personal: only if `whole`."""
    view = seen.view
    operation = operation_of(view, now)
    payload = None if view.payload is None else shown_payload(operation.job_type, view.payload)
    private = {"idempotency_key": view.names.get("idempotency_key"), "payload": payload, "result": view.result}
    return {
        "operation_id": operation.operation_id,
        "job_type": operation.job_type,
        "status": operation.status.value,
        "owner": view.names.get("owner"),
        "attempts": view.attempts,
        "accepted_at": text_of(seen.created_at),
        "changed_at": text_of(seen.updated_at),
        "run_at": text_of(view.run_at),
        "not_before": text_of(view.not_before),
        "claimed_until": text_of(view.claim_until) if operation.status is OperationStatus.RUNNING else None,
        "ended_at": text_of(view.ended_at),
        "trace_id": None if (trace := read_trace(view.trace)) is None else trace.trace_id,
        "progress": None if view.progress is None else told(view.progress),
        "progress_at": None if view.progress is None else text_of(view.progress.at),
        "parts": None if operation.parts is None else _parts(operation.parts),
        "checkpoints": view.checkpoints or None,
        "deaths": view.death or None,
        "sent_anew": view.rescues or None,
        "error": None if operation.error is None else operation.error.get("code"),
        "first_failure": _failure(view.first_failure),
        "last_failure": _failure(view.last_failure),
        **(private if whole else {}),
    }


def in_full(seen: Seen, now: datetime, *, whole: bool) -> dict[str, object]:
    """All that is told of a job but its failures. Key, payload and result only if `whole`."""
    view = seen.view
    return {
        **described(seen, now, whole=whole),
        "replays": view.replays or None,
        "replayed_at": None if view.replayed is None else text_of(view.replayed.at),
        "replayed_by": None if view.replayed is None else view.replayed.by,
    }


def _parts(tally: Tally) -> str:
    """How many of a job's parts have ended, and how."""
    ends = {
        "succeeded": tally.succeeded,
        "failed": tally.failed,
        "cancelled": tally.cancelled,
        "dead-lettered": tally.dead_lettered,
    }
    told_ends = ", ".join(f"{number} {end}" for end, number in ends.items() if number)
    return f"{tally.ended} of {tally.total} ended{f': {told_ends}' if told_ends else ''}"


def failure_told(failure: Failure) -> str:
    """A failure in a line."""
    where = f" ({failure.dependency})" if failure.dependency else ""
    return f"{failure.reason}{where}: {failure.error}"


def _failure(failure: Failure | None) -> str | None:
    return None if failure is None else f"{text_of(failure.at)} {failure_told(failure)}"
