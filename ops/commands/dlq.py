"""`tahan dlq`: the desk of dead letters on the command line. Words are read here; what is done stands in the modules beside."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from ops.commands import dlq_discard as dlq_throw
from ops.commands import dlq_edit, dlq_look, dlq_replay
from ops.letters.replay import CANARY, PATIENCE, RATE
from ops.letters.verdict import MOST_DEATHS

if TYPE_CHECKING:
    import argparse

USUAL_LIMIT = 200
PREVIEW = "say what would be done, and change nothing"


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser], everywhere: argparse.ArgumentParser) -> None:
    """Add the group with its commands."""
    about = "look at dead letters, replay, edit and discard them"
    group = commands.add_parser("dlq", help=about, description=about.capitalize())
    inner = group.add_subparsers(required=True, metavar="COMMAND")
    _add_looks(inner, everywhere)
    _add_replay(inner, everywhere)
    _add_edit(inner, everywhere)
    _add_discard(inner, everywhere)


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    everywhere: argparse.ArgumentParser,
    name: str,
    about: str,
) -> argparse.ArgumentParser:
    return commands.add_parser(name, help=about, description=about.capitalize(), parents=[everywhere])


def _add_looks(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], everywhere: argparse.ArgumentParser
) -> None:
    listing = _command(commands, everywhere, "list", "the dead letters, one a line; all of them without a selection")
    groups = _command(commands, everywhere, "groups", "the dead letters by what they died of: one repair helps a group")
    for parser in (listing, groups):
        _add_selection(parser)
        parser.add_argument(
            "--limit",
            type=int,
            default=USUAL_LIMIT if parser is listing else 10_000,
            metavar="N",
            help="letters to read a worker",
        )
    listing.set_defaults(run=dlq_look.run_list)
    groups.set_defaults(run=dlq_look.run_groups)
    show = _command(commands, everywhere, "show", "everything that is known of one dead letter")
    show.add_argument("ids", nargs=1, metavar="ID", help="beginning of a message id, an operation id or a record's key")
    show.add_argument("--payload", action="store_true", help="show its key and payload, too; masked fields stay masked")
    _add_worker(show)
    show.set_defaults(run=dlq_look.run_show)
    export = _command(
        commands, everywhere, "export", "write dead letters to a file of JSON Lines, whole, and leave them"
    )
    export.add_argument("file", metavar="FILE", help="only you can read it; nothing in it is masked")
    _add_selection(export, places=False)
    export.add_argument("--limit", type=int, default=10_000, metavar="N", help="letters to read a worker")
    export.set_defaults(run=dlq_look.run_export)


def _add_replay(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], everywhere: argparse.ArgumentParser
) -> None:
    parser = _command(commands, everywhere, "replay", "run chosen dead letters' jobs again: a few first, then the rest")
    _add_selection(parser)
    parser.add_argument(
        "--canary", type=int, default=CANARY, metavar="N", help=f"letters to begin with, by default {CANARY}; 0: none"
    )
    parser.add_argument(
        "--watch-for", type=_seconds, default=PATIENCE, metavar="S", help="seconds in which the first ones must end"
    )
    parser.add_argument("--no-watch", action="store_true", help="send all and look at none: nothing stops by itself")
    parser.add_argument(
        "--rate", type=float, default=RATE, metavar="N", help=f"letters a second, by default {RATE:.0f}; 0: no limit"
    )
    parser.add_argument("--why", help="for the audit; only a dry run does without")
    parser.add_argument("--force", action="store_true", help=f"also what died more than {MOST_DEATHS} times")
    parser.add_argument("--dry-run", action="store_true", help=PREVIEW)
    parser.add_argument(
        "--cancel-aws-redrive", action="store_true", help="stop a move task of AWS's own that is running"
    )
    parser.set_defaults(run=dlq_replay.run)


def _add_edit(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], everywhere: argparse.ArgumentParser
) -> None:
    parser = _command(commands, everywhere, "edit", "put a new job with another payload in place of a dead letter's")
    parser.add_argument(
        "ids", nargs=1, metavar="ID", help="beginning of a message id, an operation id or a record's key"
    )
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--payload", metavar="JSON", help="the new payload; without any, $EDITOR opens the old one")
    source.add_argument("--payload-file", metavar="FILE", help="a file with it")
    source.add_argument("-", dest="from_stdin", action="store_true", help="read it from standard input")
    parser.add_argument("--key", help="idempotency key of the new job; by default the old one and /edited-N")
    parser.add_argument("--job-type", help="of a letter that cannot be read")
    parser.add_argument("--why", required=True, help="for the audit")
    parser.add_argument("--dry-run", action="store_true", help=PREVIEW)
    _add_worker(parser)
    parser.set_defaults(run=dlq_edit.run)


def _add_discard(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], everywhere: argparse.ArgumentParser
) -> None:
    parser = _command(commands, everywhere, "discard", "throw chosen dead letters away; an archive keeps them")
    _add_selection(parser)
    parser.add_argument("--why", required=True, help="for the audit")
    parser.add_argument("--archive", required=True, metavar="FILE", help="JSON Lines, whole; only you can read it")
    parser.add_argument("--yes", action="store_true", help="ask nothing")
    parser.add_argument("--dry-run", action="store_true", help=PREVIEW)
    parser.set_defaults(run=dlq_throw.run)


def _add_worker(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--worker", metavar="NAME", help="whose dead letters; by default those of all workers")


def _add_selection(parser: argparse.ArgumentParser, *, places: bool = True) -> None:
    group = parser.add_argument_group("which letters: all that is said must hold")
    if places:
        group.add_argument(
            "ids", nargs="*", metavar="ID", help="beginning of a message id, an operation id or a record's key"
        )
    else:
        group.set_defaults(ids=[])
    group.add_argument("--group", metavar="SIGNATURE", help="as `dlq groups` tells it")
    group.add_argument("--job-type", metavar="NAME")
    group.add_argument("--reason", metavar="CODE")
    group.add_argument("--since", type=_moment, metavar="ISO", help="died at that time or later, with its zone")
    group.add_argument("--until", type=_moment, metavar="ISO", help="died at that time or before")
    group.add_argument("--all", action="store_true", dest="everything", help="every letter")
    _add_worker(group)  # type: ignore[arg-type]


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        message = "say in which zone"
        raise ValueError(message)
    return moment


def _seconds(text: str) -> timedelta:
    try:
        return timedelta(seconds=float(text))
    except OverflowError as error:
        message = "longer than anybody waits"
        raise ValueError(message) from error
