"""`tahan operation list`: the jobs that were accepted for an owner, newest first, a page at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ops.exits import CommandError, Exit
from ops.explained import explained
from shared.errors import Malformed
from shared.intake.operation import operation_of
from shared.intake.owned_jobs import MOST_LISTED, Place

if TYPE_CHECKING:
    import argparse
    from datetime import datetime

    from ops.stack.deployed import Deployed
    from ops.tools import Tools
    from shared.job_record import JobView

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
    with explained():
        stack = tools.deployed(options.stack)
        rows, place = page_of(options.owner, options.limit, options.next, tools, stack)
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


def page_of(
    owner: str, limit: int, place: str | None, tools: Tools, stack: Deployed
) -> tuple[list[dict[str, str]], str | None]:
    """The rows of a page of an owner's jobs, and where the next one begins.

    Raises:
        CommandError: the place was not told for this owner's list.
        Unavailable: the store did not answer.
    """
    try:
        after = None if place is None else Place.read(place, owner)
    except Malformed as error:
        message = "--next: this place was not told for this owner's list."
        raise CommandError(message, Exit.REFUSED) from error
    now = tools.clock.now()
    page = tools.owned(stack.jobs_table).page(owner, limit, after, now)
    following = None if page.next is None else page.next.written(owner)
    return [row_of(job.view, job.created_at, now) for job in page.jobs], following


def row_of(view: JobView, created_at: datetime | None, now: datetime) -> dict[str, str]:
    """A job in a list; nothing personal."""
    operation = operation_of(view, now)
    return {
        "operation_id": operation.operation_id,
        "job_type": operation.job_type,
        "status": operation.status.value,
        "created_at": "" if created_at is None else created_at.isoformat(timespec="seconds"),
    }
