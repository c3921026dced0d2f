"""What a page of `docs/runbooks` tells people to type: its commands as they stand there, and with their blanks filled in."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from infra.alarms.guides import FOLDER

if TYPE_CHECKING:
    from collections.abc import Mapping

BLOCK = re.compile(r"^ {4}\./tahan (.+)$", re.MULTILINE)
INLINE = re.compile(r"`(?:\./)?tahan ([^`]+)`")
BLANK = re.compile(r"<([a-z ]+)>")
JOINED = re.compile(r"<([a-z-]+)>")


@dataclass(frozen=True, slots=True)
class Command:
    """A command of `tahan` as a page has it, without the program's name."""

    text: str

    def words(self, blanks: Mapping[str, str]) -> list[str]:
        """Its words, with the blanks filled in.

        Raises:
            KeyError: a blank that nobody fills.
        """
        joined = BLANK.sub(lambda found: f"<{found[1].replace(' ', '-')}>", self.text)
        return [JOINED.sub(lambda found: blanks[found[1].replace("-", " ")], word) for word in shlex.split(joined)]

    def tried(self) -> list[str]:
        """Its words, with something in each blank."""
        return self.words(dict.fromkeys(BLANK.findall(self.text), "x"))


def text_of(page: str) -> str:
    """A page."""
    return (FOLDER / f"{page}.md").read_text(encoding="utf-8")


def to_type(page: str) -> list[Command]:
    """The commands that stand in lines of their own, in the page's order."""
    return [Command(text) for text in BLOCK.findall(text_of(page))]


def named(page: str) -> list[Command]:
    """All commands of a page, also those within its sentences."""
    return [*to_type(page), *(Command(text) for text in INLINE.findall(text_of(page)))]
