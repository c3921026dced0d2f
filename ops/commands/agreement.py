"""Asks people before something is changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ops.exits import CommandError, Exit

if TYPE_CHECKING:
    from ops.tools import Tools


def agreed(tools: Tools, question: str, *, yes: bool) -> None:
    """Return if people agree.

    Raises:
        CommandError: they do not, or nobody is there to be asked.
    """
    if yes:
        return
    tools.tell(f"{question} [y/N]")
    answer = tools.stdin.readline()
    if answer.strip().lower() not in {"y", "yes"}:
        message = (
            "Nothing was changed." if answer else "Nobody is there to be asked: scripts say --yes. Nothing was changed."
        )
        raise CommandError(message, Exit.REFUSED)
