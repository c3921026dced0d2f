"""`tahan job list`: looks through the job records of every owner, a part of the table at a time, in no order."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from functions.registry import WORKERS
from ops.commands.operation_list import row_of
from ops.exits import CommandError, Exit
from ops.explained import explained
from shared.intake.operation import OperationStatus, operation_of
from shared.job import JobTypes
from shared.job_record import SYSTEM
from shared.message import Message
from shared.pipeline.run import lock_keys
from shared.wire.parsing import typed_payload

if TYPE_CHECKING:
    import argparse
    from datetime import datetime

    from ops.jobs.job_records import Some
    from ops.stack.deployed import Deployed
    from ops.tools import Tools
    from shared.job_record import JobView

USUAL, MOST = 20, 100
PLACE = re.compile("[0-9A-Za-z_/:.-]{1,200}")
JOB_TYPES = JobTypes.of(*(job for worker in WORKERS for job in worker.jobs))


@dataclass(frozen=True, slots=True)
class Sought:
    """What is sought among the jobs; everything that is given must hold.

    Attributes:
        state: as clients see it, and the desk.
        key: idempotency key.
        resource: a lock key, of a job whose payload is still there.
        owner: of those over HTTP; `system` for those straight from a queue.
    """

    state: OperationStatus | None = None
    job_type: str | None = None
    key: str | None = None
    resource: str | None = None
    owner: str | None = None

    def fits(self, view: JobView, now: datetime) -> bool:
        """Whether the job is sought."""
        names = view.names
        return (
            "operation_id" in names
            and self.job_type in {None, names.get("job_type")}
            and self.key in {None, names.get("idempotency_key")}
            and self.owner in {None, names.get("owner", SYSTEM)}
            and (self.state is None or operation_of(view, now).status is self.state)
            and (self.resource is None or self.resource in resources_of(view))
        )


def resources_of(view: JobView) -> tuple[str, ...]:
    """The lock keys of a job; none where it has ended, since its payload is gone then."""
    if view.payload is None:
        return ()
    message = Message(view.names["job_type"], view.version, view.names["idempotency_key"], view.payload)
    try:
        job, payload = typed_payload(message, JOB_TYPES)
        return lock_keys(job, payload)
    except Exception:  # noqa: BLE001 - of another deploy, deposited, or by an author's lock that fails on it
        return ()


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser], everywhere: argparse.ArgumentParser) -> None:
    """Add the command."""
    about = "look through the jobs of every owner, a part of the table at a time"
    parser = commands.add_parser("list", help=about, description=about.capitalize(), parents=[everywhere])
    parser.add_argument("--state", choices=[state.value for state in OperationStatus])
    parser.add_argument("--job-type", metavar="NAME")
    parser.add_argument("--key", help="idempotency key")
    parser.add_argument("--resource", metavar="LOCK_KEY", help="like order/17; of jobs that have not ended")
    parser.add_argument("--owner", help="as `operation show` tells it; system for what came straight from a queue")
    parser.add_argument("--limit", type=int, default=USUAL, metavar="N", help=f"1 to {MOST}, by default {USUAL}")
    parser.add_argument("--next", metavar="PLACE", help="go on after the look that has told this")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace, tools: Tools) -> Exit:
    """Show some jobs.

    Raises:
        CommandError: the words are wrong, or the store cannot be asked.
    """
    if not 1 <= options.limit <= MOST:
        message = f"--limit {options.limit}: give 1 to {MOST}."
        raise CommandError(message, Exit.REFUSED)
    state = None if options.state is None else OperationStatus(options.state)
    sought = Sought(state, options.job_type, options.key, options.resource, options.owner)
    with explained():
        some = some_jobs(sought, options.limit, options.next, tools, tools.deployed(options.stack))
    rows = [row_of(seen.view, seen.created_at, tools.clock.now()) for seen in some.jobs]
    if options.json:
        tools.show({"jobs": rows, "read": some.read, "next": some.next}, as_json=True)
        return Exit.DONE
    for row in rows:
        tools.write(
            "  ".join((f"{row['created_at']:25}", f"{row['status']:13}", f"{row['job_type']:24}", row["operation_id"]))
        )
    if some.next is not None:
        tools.tell(f"{some.read} records were looked at. More: --next {some.next}")
    elif not rows:
        tools.tell("There are none.")
    return Exit.DONE


def some_jobs(sought: Sought, most: int, after: str | None, tools: Tools, stack: Deployed) -> Some:
    """Some of the jobs that are sought.

    Raises:
        CommandError: the place to go on from is none.
        Unavailable: the store did not answer.
    """
    if after is not None and not PLACE.fullmatch(after):
        message = "--next: this is no place that a look has told."
        raise CommandError(message, Exit.REFUSED)
    now = tools.clock.now()
    return tools.jobs(stack.jobs_table).some(lambda view: sought.fits(view, now), most, after)
