"""`tahan operation show`: how a job stands, of whatever owner, once or until it has ended. It changes nothing."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from ops.commands import operation_list as listing
from ops.exits import CommandError, Exit
from ops.explained import explained
from ops.jobs.payloads import shown_payload
from ops.jobs.watching import Watch, exit_of, told
from shared.intake.operation import OF_JOB, OperationStatus, operation_of
from shared.trace import read_trace

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from ops.jobs.job_records import Seen
    from ops.tools import Tools
    from shared.outcome import Failure
    from shared.parts import Tally

ID = re.compile("(?:op_)?([0-9a-f]{64})")
PATIENCE = 600


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser], everywhere: argparse.ArgumentParser) -> None:
    """Add the group with its commands."""
    group = commands.add_parser("operation", help="look at jobs", description="Look at jobs.")
    inner = group.add_subparsers(required=True, metavar="COMMAND")
    listing.add(inner, everywhere)
    about = "how a job stands, read consistently from its record"
    parser = inner.add_parser("show", help=about, description=about.capitalize(), parents=[everywhere])
    parser.add_argument("id", metavar="ID", help="operation id (op_...), or the key of the job record")
    parser.add_argument("--watch", action="store_true", help="look again until it has ended")
    parser.add_argument(
        "--timeout", type=int, default=PATIENCE, metavar="S", help=f"seconds to watch, by default {PATIENCE}"
    )
    parser.add_argument("--payload", action="store_true", help="show its idempotency key, payload and result, too")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace, tools: Tools) -> Exit:
    """Look, watch if asked to, and show.

    Raises:
        CommandError: there is none, or the store cannot be asked.
    """
    record = record_named(options.id)
    with explained():
        jobs = tools.jobs(tools.deployed(options.stack).jobs_table)
        seen = jobs.look(record)
        if options.watch:
            seen = Watch(jobs, record, tools, timedelta(seconds=options.timeout)).until_over(seen)
        now = tools.clock.now()
    if seen is None:
        message = (
            "There is no such operation: it was never accepted, no worker has begun it yet (its message is on the queue:"
            " --watch waits for it), or it ended over 30 days ago."
        )
        raise CommandError(message, Exit.ABSENT)
    tools.show(described(seen, now, whole=options.payload), as_json=options.json)
    return exit_of(OF_JOB[seen.view.status], watched=options.watch)


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
        "accepted_at": _text(seen.created_at),
        "changed_at": _text(seen.updated_at),
        "run_at": _text(view.run_at),
        "not_before": _text(view.not_before),
        "claimed_until": _text(view.claim_until) if operation.status is OperationStatus.RUNNING else None,
        "ended_at": _text(view.ended_at),
        "trace_id": None if (trace := read_trace(view.trace)) is None else trace.trace_id,
        "progress": None if view.progress is None else told(view.progress),
        "progress_at": None if view.progress is None else _text(view.progress.at),
        "parts": None if operation.parts is None else _parts(operation.parts),
        "checkpoints": view.checkpoints or None,
        "deaths": view.death or None,
        "sent_anew": view.rescues or None,
        "error": None if operation.error is None else operation.error.get("code"),
        "first_failure": _failure(view.first_failure),
        "last_failure": _failure(view.last_failure),
        **(private if whole else {}),
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


def _failure(failure: Failure | None) -> str | None:
    if failure is None:
        return None
    where = f" ({failure.dependency})" if failure.dependency else ""
    return f"{failure.at.isoformat()} {failure.reason}{where}: {failure.error}"


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
