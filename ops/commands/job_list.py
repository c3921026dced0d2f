"""`tahan job list`: looks through the job records of every owner, a part of the table at a time, in no order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ops.commands.words import bounded, command
from ops.exits import Exit
from ops.explained import explained
from ops.jobs.owned import row_of
from ops.jobs.search import Sought, some_jobs
from shared.intake.operation import OperationStatus

if TYPE_CHECKING:
    import argparse

    from ops.commands.words import Commands
    from ops.tools import Tools

USUAL, MOST = 20, 100


def add(commands: Commands, everywhere: argparse.ArgumentParser) -> None:
    """Add the command."""
    about = "look through the jobs of every owner, a part of the table at a time"
    parser = command(commands, everywhere, "list", about, run)
    parser.add_argument("--state", choices=[state.value for state in OperationStatus])
    parser.add_argument("--job-type", metavar="NAME")
    parser.add_argument("--key", help="idempotency key")
    parser.add_argument("--resource", metavar="LOCK_KEY", help="like order/17; of jobs that have not ended")
    parser.add_argument("--owner", help="as `operation show` tells it; system for what came straight from a queue")
    parser.add_argument(
        "--limit", type=bounded(MOST), default=USUAL, metavar="N", help=f"1 to {MOST}, by default {USUAL}"
    )
    parser.add_argument("--next", metavar="PLACE", help="go on after the look that has told this")


def run(options: argparse.Namespace, tools: Tools) -> Exit:
    """Show some jobs.

    Raises:
        CommandError: the words are wrong, or the store cannot be asked.
    """
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
