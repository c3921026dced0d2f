"""How letters are named in words, and found by them; the commands of the desk share it."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from ops.exits import CommandError, Exit
from ops.explained import explained
from ops.letters.found import found_by
from ops.letters.selection import Selection

if TYPE_CHECKING:
    import argparse

    from ops.letters.desk import Desk
    from ops.letters.dossier import Dossier
    from ops.tools import Tools

ID = "beginning of a message id, an operation id or a record's key"


def add_worker(parser: argparse._ActionsContainer) -> None:
    """Add the word that names whose letters are meant."""
    parser.add_argument("--worker", metavar="NAME", help="whose dead letters; by default those of all workers")


def add_selection(parser: argparse.ArgumentParser, *, places: bool = True) -> None:
    """Add the words that choose letters; without places none is named by its id."""
    group = parser.add_argument_group("which letters: all that is said must hold")
    if places:
        group.add_argument("ids", nargs="*", metavar="ID", help=ID)
    else:
        group.set_defaults(ids=[])
    group.add_argument("--group", metavar="SIGNATURE", help="as `dlq groups` tells it")
    group.add_argument("--job-type", metavar="NAME")
    group.add_argument("--reason", metavar="CODE")
    group.add_argument("--since", type=_moment, metavar="ISO", help="died at that time or later, with its zone")
    group.add_argument("--until", type=_moment, metavar="ISO", help="died at that time or before")
    group.add_argument("--all", action="store_true", dest="everything", help="every letter")
    add_worker(group)


def selection_of(options: argparse.Namespace) -> Selection:
    """What was said about which letters are meant.

    Raises:
        CommandError: an empty id, with which every other one begins.
    """
    if not all(options.ids):
        message = "An ID is empty: every letter would be meant. Say --all for that."
        raise CommandError(message, Exit.REFUSED)
    return Selection(
        tuple(options.ids),
        getattr(options, "group", None),
        getattr(options, "job_type", None),
        getattr(options, "reason", None),
        getattr(options, "since", None),
        getattr(options, "until", None),
        getattr(options, "everything", False),
    )


def found_in(options: argparse.Namespace, tools: Tools, most: int) -> tuple[list[tuple[Desk, Dossier]], bool]:
    """The letters that are meant, of all workers that are meant; and whether there may be more.

    Raises:
        CommandError: AWS does not answer, or refuses.
    """
    selection = selection_of(options)
    with explained():
        stack = tools.deployed(options.stack)
    return found_by(tools, stack, selection, options.worker, most)


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        message = "say in which zone"
        raise ValueError(message)
    return moment
