"""`tahan operation show`: how a job stands, of whatever owner, once or until it has ended. It changes nothing."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from ops.commands import operation_list as listing
from ops.commands.words import command, group
from ops.exits import CommandError, Exit
from ops.explained import explained
from ops.jobs.shown import described, record_named
from ops.jobs.watching import Watch, exit_of
from shared.intake.operation import OF_JOB

if TYPE_CHECKING:
    import argparse

    from ops.commands.words import Commands
    from ops.tools import Tools

PATIENCE = 600


def add(commands: Commands, everywhere: argparse.ArgumentParser) -> None:
    """Add the group with its commands."""
    inner = group(commands, "operation", "look at jobs")
    listing.add(inner, everywhere)
    about = "how a job stands, read consistently from its record"
    parser = command(inner, everywhere, "show", about, run)
    parser.add_argument("id", metavar="ID", help="operation id (op_...), or the key of the job record")
    parser.add_argument("--watch", action="store_true", help="look again until it has ended")
    parser.add_argument(
        "--timeout", type=int, default=PATIENCE, metavar="S", help=f"seconds to watch, by default {PATIENCE}"
    )
    parser.add_argument("--payload", action="store_true", help="show its idempotency key, payload and result, too")


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
