"""`tahan operation list`: the jobs that were accepted for an owner, newest first, a page at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ops.commands.words import bounded, command
from ops.exits import Exit
from ops.explained import explained
from ops.jobs.owned import page_of
from shared.intake.owned_jobs import MOST_LISTED

if TYPE_CHECKING:
    import argparse

    from ops.commands.words import Commands
    from ops.tools import Tools

USUAL = 20


def add(commands: Commands, everywhere: argparse.ArgumentParser) -> None:
    """Add the command."""
    about = "the jobs that were accepted for an owner, newest first"
    parser = command(commands, everywhere, "list", about, run)
    parser.add_argument("--owner", required=True, help="as `operation show` tells it, like jwt:<issuer>:<subject>")
    parser.add_argument(
        "--limit", type=bounded(MOST_LISTED), default=USUAL, metavar="N", help=f"1 to {MOST_LISTED}, by default {USUAL}"
    )
    parser.add_argument("--next", metavar="PLACE", help="go on after the page that has told this")


def run(options: argparse.Namespace, tools: Tools) -> Exit:
    """Show a page.

    Raises:
        CommandError: the words are wrong, or the store cannot be asked.
    """
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
