"""`tahan dlq`: the desk of dead letters on the command line. Words are read here; what is done stands in the modules beside."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from ops.commands import dlq_discard, dlq_edit, dlq_look, dlq_replay
from ops.commands.dlq_words import ID, add_selection, add_worker
from ops.commands.words import bounded, command, group, may_change
from ops.letters.found import MOST
from ops.letters.replay import CANARY, PATIENCE, RATE
from ops.letters.verdict import MOST_DEATHS

if TYPE_CHECKING:
    import argparse

    from ops.commands.words import Commands

USUAL_LIMIT = 200
# Amazon SQS Developer Guide, "Amazon SQS message quotas": so many messages of a standard queue may be hidden at one time.
MOST_HIDDEN = 120_000


def add(commands: Commands, everywhere: argparse.ArgumentParser) -> None:
    """Add the group with its commands."""
    inner = group(commands, "dlq", "look at dead letters, replay, edit and discard them")
    _add_looks(inner, everywhere)
    _add_replay(inner, everywhere)
    _add_edit(inner, everywhere)
    _add_discard(inner, everywhere)


def _add_looks(commands: Commands, everywhere: argparse.ArgumentParser) -> None:
    about = "the dead letters, one a line; all of them without a selection"
    listing = command(commands, everywhere, "list", about, dlq_look.run_list)
    about = "the dead letters by what they died of: one repair helps a group"
    groups = command(commands, everywhere, "groups", about, dlq_look.run_groups)
    about = "everything that is known of one dead letter"
    show = command(commands, everywhere, "show", about, dlq_look.run_show)
    show.add_argument("ids", nargs=1, metavar="ID", help=ID)
    show.add_argument("--payload", action="store_true", help="show its key and payload, too; masked fields stay masked")
    add_worker(show)
    about = "write dead letters to a file of JSON Lines, whole, and leave them"
    export = command(commands, everywhere, "export", about, dlq_look.run_export)
    export.add_argument("file", metavar="FILE", help="only you can read it; nothing in it is masked")
    for parser, usual in ((listing, USUAL_LIMIT), (groups, MOST), (export, MOST)):
        add_selection(parser, places=parser is not export)
        parser.add_argument(
            "--limit", type=bounded(MOST_HIDDEN), default=usual, metavar="N", help="letters to read a worker"
        )


def _add_replay(commands: Commands, everywhere: argparse.ArgumentParser) -> None:
    about = "run chosen dead letters' jobs again: a few first, then the rest"
    parser = command(commands, everywhere, "replay", about, dlq_replay.run)
    add_selection(parser)
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
    may_change(parser, "for the audit; only a dry run does without", asks=False, demands=False)
    parser.add_argument("--force", action="store_true", help=f"also what died more than {MOST_DEATHS} times")
    parser.add_argument(
        "--cancel-aws-redrive", action="store_true", help="stop a move task of AWS's own that is running"
    )


def _add_edit(commands: Commands, everywhere: argparse.ArgumentParser) -> None:
    about = "put a new job with another payload in place of a dead letter's"
    parser = command(commands, everywhere, "edit", about, dlq_edit.run)
    parser.add_argument("ids", nargs=1, metavar="ID", help=ID)
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--payload", metavar="JSON", help="the new payload; without any, $EDITOR opens the old one")
    source.add_argument("--payload-file", metavar="FILE", help="a file with it")
    source.add_argument("-", dest="from_stdin", action="store_true", help="read it from standard input")
    parser.add_argument("--key", help="idempotency key of the new job; by default the old one and /edited-N")
    parser.add_argument("--job-type", help="of a letter that cannot be read")
    may_change(parser, asks=False)
    add_worker(parser)


def _add_discard(commands: Commands, everywhere: argparse.ArgumentParser) -> None:
    about = "throw chosen dead letters away; an archive keeps them"
    parser = command(commands, everywhere, "discard", about, dlq_discard.run)
    add_selection(parser)
    parser.add_argument("--archive", required=True, metavar="FILE", help="JSON Lines, whole; only you can read it")
    may_change(parser)


def _seconds(text: str) -> timedelta:
    try:
        return timedelta(seconds=float(text))
    except OverflowError as error:
        message = "longer than anybody waits"
        raise ValueError(message) from error
