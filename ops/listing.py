"""`tahan operation list`: the jobs that were accepted for an owner, newest first, a page at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ops.exits import CommandError, Exit
from ops.explained import explained
from shared.errors import Malformed
from shared.operation import operation_of
from shared.owned_jobs import MOST_LISTED, Place

if TYPE_CHECKING:
    import argparse
    from datetime import datetime

    from ops.tools import Tools
    from shared.owned_jobs import Listed

USUAL = 20


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser], everywhere: argparse.ArgumentParser) -> None:
    """Add the command."""
    about = "the jobs that were accepted for an owner, newest first"
    parser = commands.add_parser("list", help=about, description=about.capitalize(), parents=[everywhere])
    parser.add_argument("--owner", required=True, help="as `operation show` tells it, like jwt:<issuer>:<subject>")
    parser.add_argument("--limit", type=int, default=USUAL, metavar="N", help=f"1 to {MOST_LISTED}, by default {USUAL}")
    parser.add_argument("--next", metavar="PLACE", help="go on after the page that has told this")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace, tools: Tools) -> Exit:
    """Show a page.

    Raises:
        CommandError: the words are wrong, or the store cannot be asked.
    """
    if not 1 <= options.limit <= MOST_LISTED:
        message = f"--limit {options.limit}: give 1 to {MOST_LISTED}."
        raise CommandError(message, Exit.REFUSED)
    try:
        after = None if options.next is None else Place.read(options.next, options.owner)
    except Malformed as error:
        message = "--next: this place was not told for this owner's list."
        raise CommandError(message, Exit.REFUSED) from error
    with explained():
        jobs = tools.owned(tools.deployed(options.stack).jobs_table)
        page = jobs.page(options.owner, options.limit, after, tools.clock.now())
    place = None if page.next is None else page.next.written(options.owner)
    rows = [_row(job, tools.clock.now()) for job in page.jobs]
    if options.json:
        tools.show({"operations": rows, "next": place}, as_json=True)
        return Exit.DONE
    for row in rows:
        tools.write("  ".join((row["created_at"], f"{row['status']:13}", f"{row['job_type']:24}", row["operation_id"])))
    if place is not None:
        tools.tell(f"More: --next {place}")
    elif not rows:
        tools.tell("There are none.")
    return Exit.DONE


def _row(job: Listed, now: datetime) -> dict[str, str]:
    operation = operation_of(job.view, now)
    return {
        "operation_id": operation.operation_id,
        "job_type": operation.job_type,
        "status": operation.status.value,
        "created_at": job.created_at.isoformat(timespec="seconds"),
    }
