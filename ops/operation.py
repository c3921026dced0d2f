"""`tahan operation show`: how a job stands, of whatever owner, once or until it has ended. It changes nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, assert_never

from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from ops.exits import CommandError, Exit
from ops.explained import explained
from shared.errors import Unavailable
from shared.operation import OF_JOB, OperationStatus, operation_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping

    from ops.jobs import Jobs, Seen
    from ops.tools import Tools
    from shared.outcome import Failure

ID = re.compile("(?:op_)?([0-9a-f]{64})")
PAUSE = timedelta(seconds=2)  # as the front door advises its clients
LONGEST_PAUSE = timedelta(seconds=30)  # while the job waits for its time
PATIENCE = 600
NOT_BEGUN = "there is no such operation yet: if it was enqueued, its message is on the queue"


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser], everywhere: argparse.ArgumentParser) -> None:
    """Add the group with its commands."""
    group = commands.add_parser("operation", help="look at jobs", description="Look at jobs.")
    about = "how a job stands, read consistently from its record"
    parser = group.add_subparsers(required=True, metavar="COMMAND").add_parser(
        "show", help=about, description=about.capitalize(), parents=[everywhere]
    )
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
    found = ID.fullmatch(options.id)
    if found is None:
        message = f"{options.id!r} is no operation id: those are op_ and 64 hexadecimal digits."
        raise CommandError(message, Exit.REFUSED)
    with explained():
        jobs = tools.jobs(tools.deployed(options.stack).jobs_table)
        seen = jobs.look(found[1])
        if options.watch:
            seen = Watch(jobs, found[1], tools, timedelta(seconds=options.timeout)).until_over(seen)
    if seen is None:
        message = (
            "There is no such operation: it was never accepted, no worker has begun it yet (its message is on the queue:"
            " --watch waits for it), or it ended over 30 days ago."
        )
        raise CommandError(message, Exit.ABSENT)
    tools.show(described(seen, whole=options.payload), as_json=options.json)
    return exit_of(OF_JOB[seen.view.status], watched=options.watch)


@dataclass(frozen=True, slots=True)
class Watch:
    """Looks at a job until it is over or the time is up; one whose message waits on the queue has no record yet."""

    jobs: Jobs
    record: str
    tools: Tools
    patience: timedelta

    def until_over(self, seen: Seen | None) -> Seen | None:
        """The record as it was seen last; None if it never was."""
        with _Line(self.tools) as tell:
            return self._look_on(seen, tell)

    def _look_on(self, last: Seen | None, tell: Callable[[str], None]) -> Seen | None:
        deadline = self.tools.clock.monotonic() + self.patience.total_seconds()
        while last is None or not _is_over(OF_JOB[last.view.status]):
            tell(NOT_BEGUN if last is None else line_of(last, self.tools.clock.now()))
            left = deadline - self.tools.clock.monotonic()
            if left <= 0:
                break
            self.tools.clock.sleep(min(left, self._pause(last).total_seconds()))
            try:
                last = self.jobs.look(self.record)
            except Unavailable as error:  # it may answer the next time; the patience ends it
                tell(f"not seen: {error}")
        return last

    def _pause(self, seen: Seen | None) -> timedelta:
        before = None if seen is None else seen.view.not_before
        wait = PAUSE if before is None else before - self.tools.clock.now()
        return min(max(wait, PAUSE), LONGEST_PAUSE)


class _Line:
    """Where the state is told while we watch: one live line on a terminal, elsewhere a line for each change."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._told = ""
        self._spinner = Spinner("dots")
        self._live = Live(self._spinner, console=tools.err, transient=True) if tools.err.is_terminal else None

    def __enter__(self) -> Callable[[str], None]:
        if self._live is not None:
            self._live.start()
        return self._tell

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def _tell(self, line: str) -> None:
        if self._live is not None:
            self._spinner.update(text=Text(line))
        elif line != self._told:
            self._tools.tell(line)
        self._told = line


def _is_over(status: OperationStatus) -> bool:
    """Whether it stays so until people do something. An unknown outcome is being found out by another job."""
    return exit_of(status, watched=True) in {Exit.DONE, Exit.ENDED_BADLY}


def exit_of(status: OperationStatus, *, watched: bool) -> Exit:
    """How the command ends for a job that stands so."""
    match status:
        case OperationStatus.DONE:
            return Exit.DONE
        case OperationStatus.FAILED | OperationStatus.CANCELLED | OperationStatus.DEAD_LETTERED:
            return Exit.ENDED_BADLY
        case OperationStatus.UNKNOWN:
            return Exit.UNKNOWN
        case OperationStatus.PENDING | OperationStatus.RUNNING | OperationStatus.RETRYING:
            return Exit.UNDER_WAY if watched else Exit.DONE
    assert_never(status)


def line_of(seen: Seen, now: datetime) -> str:
    """How it stands, in a line."""
    view = seen.view
    line = f"{view.names.get('job_type', 'job')}: {OF_JOB[view.status]}, attempts {view.attempts}"
    if view.not_before is not None and view.not_before > now:
        line += f", not before {view.not_before:%H:%M:%S}"
    if view.last_failure is not None:
        line += f", last failure {view.last_failure.reason}"
    return line


def described(seen: Seen, *, whole: bool) -> Mapping[str, object]:
    """What is shown of a job. Its key, payload and result may hold what is personal: only if `whole`."""
    view = seen.view
    operation = operation_of(view)
    private = {"idempotency_key": view.names.get("idempotency_key"), "payload": view.payload, "result": view.result}
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
        "deaths": view.death or None,
        "sent_anew": view.rescues or None,
        "error": None if operation.error is None else operation.error.get("code"),
        "first_failure": _failure(view.first_failure),
        "last_failure": _failure(view.last_failure),
        **(private if whole else {}),
    }


def _failure(failure: Failure | None) -> str | None:
    if failure is None:
        return None
    where = f" ({failure.dependency})" if failure.dependency else ""
    return f"{failure.at.isoformat()} {failure.reason}{where}: {failure.error}"


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
