"""`tahan locks list|show`: which lock keys are held, and for how long. The lookout looks for us, within the network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ops.exits import CommandError, Exit
from ops.explained import explained
from ops.tables import add_row, table_of

if TYPE_CHECKING:
    import argparse

    from ops.tools import Tools

USUAL, MOST = 100, 1000


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser], everywhere: argparse.ArgumentParser) -> None:
    """Add the group with its commands."""
    about = "look at the locks that are held"
    group = commands.add_parser("locks", help=about, description=about.capitalize())
    inner = group.add_subparsers(required=True, metavar="COMMAND")
    about = "lock keys that are held, by their first letters"
    listing = inner.add_parser("list", help=about, description=about.capitalize(), parents=[everywhere])
    listing.add_argument("start", nargs="?", default="", metavar="START", help="like order/; by default all")
    listing.add_argument("--limit", type=int, default=USUAL, metavar="N", help=f"1 to {MOST}, by default {USUAL}")
    listing.set_defaults(run=run_list)
    about = "who holds one lock key, and for how long"
    show = inner.add_parser("show", help=about, description=about.capitalize(), parents=[everywhere])
    show.add_argument("key", metavar="KEY", help="like order/17")
    show.set_defaults(run=run_show)


def run_list(options: argparse.Namespace, tools: Tools) -> Exit:
    """List locks.

    Raises:
        CommandError: the words are wrong, or the lookout does not answer.
    """
    if not 1 <= options.limit <= MOST:
        message = f"--limit {options.limit}: give 1 to {MOST}."
        raise CommandError(message, Exit.REFUSED)
    answer = _asked({"look": "locks", "start": options.start, "most": options.limit}, options, tools)
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
    lock = _asked({"look": "lock", "key": options.key}, options, tools)["lock"]
    if lock is None:
        message = f"Nobody holds {options.key!r}."
        raise CommandError(message, Exit.ABSENT)
    fields = {"key": lock["key"], "holder": lock["holder"], "left_s": lock["left_s"]}
    tools.show(fields, as_json=options.json)
    tools.tell("It ends by itself, unless its holder renews it: nothing else is to be done about a leaked lock.")
    return Exit.DONE


def _asked(question: dict[str, object], options: argparse.Namespace, tools: Tools) -> dict[str, Any]:
    with explained():
        return tools.running(tools.deployed(options.stack)).ask_lookout(question)
