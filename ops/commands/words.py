"""The words that commands have in common: how a command and a group are added, what each change is asked for, numbers within bounds."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from ops.exits import Exit
    from ops.tools import Tools

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001 - argparse names it nowhere else
Run: TypeAlias = "Callable[[argparse.Namespace, Tools], Exit]"

WHY = "for the audit"
DRY_RUN = "say what would be done, and change nothing"


def command(
    commands: Commands, everywhere: argparse.ArgumentParser, name: str, about: str, run: Run
) -> argparse.ArgumentParser:
    """Add a command, which also knows the words that hold everywhere; give its parser, for the words of its own."""
    parser = commands.add_parser(name, help=about, description=about.capitalize(), parents=[everywhere])
    parser.set_defaults(run=run)
    return parser


def group(commands: Commands, name: str, about: str, what: str = "COMMAND") -> Commands:
    """Add a group of commands."""
    parser = commands.add_parser(name, help=about, description=about.capitalize())
    return parser.add_subparsers(required=True, metavar=what)


def may_change(parser: argparse.ArgumentParser, why: str = WHY, *, asks: bool = True, demands: bool = True) -> None:
    """Add what every change is given: its reason, a dry run, and, where people are asked, the word that spares it.

    Args:
        parser: of the command.
        why: whom the reason is for.
        asks: whether people are asked before something is changed.
        demands: whether there is no running it without a reason.
    """
    parser.add_argument("--why", required=demands, help=why)
    if asks:
        parser.add_argument("--yes", action="store_true", help="ask nothing")
    parser.add_argument("--dry-run", action="store_true", help=DRY_RUN)


def bounded(most: int, least: int = 1) -> Callable[[str], int]:
    """Reads a whole number within bounds, for argparse."""

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if not least <= number <= most:
            message = f"{text}: give {least} to {most}."
            raise argparse.ArgumentTypeError(message)
        return number

    return read
