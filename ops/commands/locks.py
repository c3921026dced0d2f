"""`tahan locks list|show`: which lock keys are held, and for how long. The lookout looks for us, within the network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ops.commands.words import bounded, command, group
from ops.exits import CommandError, Exit
from ops.explained import explained
from ops.stack.locks import MOST, USUAL, lock_of, some_locks
from ops.tables import add_row, table_of

if TYPE_CHECKING:
    import argparse

    from ops.commands.words import Commands
    from ops.tools import Tools


def add(commands: Commands, everywhere: argparse.ArgumentParser) -> None:
    """Add the group with its commands."""
    inner = group(commands, "locks", "look at the locks that are held")
    listing = command(inner, everywhere, "list", "lock keys that are held, by their first letters", run_list)
    listing.add_argument("start", nargs="?", default="", metavar="START", help="like order/; by default all")
    listing.add_argument(
        "--limit", type=bounded(MOST), default=USUAL, metavar="N", help=f"1 to {MOST}, by default {USUAL}"
    )
    show = command(inner, everywhere, "show", "who holds one lock key, and for how long", run_show)
    show.add_argument("key", metavar="KEY", help="like order/17")


def run_list(options: argparse.Namespace, tools: Tools) -> Exit:
    """List locks.

    Raises:
        CommandError: the lookout does not answer.
    """
    with explained():
        answer = some_locks(tools.running(tools.deployed(options.stack)), options.start, options.limit)
    if options.json:
        tools.show({"locks": answer["locks"], "complete": answer["complete"]}, as_json=True)
        return Exit.DONE
    table = table_of("lock key", "held by", "for another")
    for lock in answer["locks"]:
        add_row(table, lock["key"], lock["holder"], f"{lock['left_s']:.0f} s")
    if answer["locks"]:
        tools.out.print(table)
    else:
        tools.tell("Nothing is held.")
    if not answer["complete"]:
        tools.tell("There may be more: give more of the key's beginning, or a higher --limit.")
    return Exit.DONE


def run_show(options: argparse.Namespace, tools: Tools) -> Exit:
    """Show a lock.

    Raises:
        CommandError: nobody holds it, or the lookout does not answer.
    """
    with explained():
        lock = lock_of(tools.running(tools.deployed(options.stack)), options.key)
    if lock is None:
        message = f"Nobody holds {options.key!r}."
        raise CommandError(message, Exit.ABSENT)
    fields = {"key": lock["key"], "holder": lock["holder"], "left_s": lock["left_s"]}
    tools.show(fields, as_json=options.json)
    tools.tell("It ends by itself, unless its holder renews it: nothing else is to be done about a leaked lock.")
    return Exit.DONE
