"""`docs/tutorial.md` as steps: what to run, what to write, what stays up, and how each ends."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from infra.stage.settings import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = ROOT / "docs" / "tutorial.md"
BLOCK = re.compile(r"(?:^<!-- (?P<note>[^\n]+) -->\n)?^```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Run:
    """Commands of a shell, a line each; the last one ends with this status, those before it with 0."""

    lines: tuple[str, ...]
    ends: int = 0


@dataclass(frozen=True, slots=True)
class StaysUp:
    """A command that is left running in another terminal."""

    line: str


@dataclass(frozen=True, slots=True)
class Write:
    """A file that is written, or to which a text is added."""

    file: str
    text: str
    adds: bool = False


Step = Run | StaysUp | Write


def steps() -> Iterator[Step]:
    """The steps of the page, in its order. What is shown and not replayed has no kind."""
    for block in BLOCK.finditer(PAGE.read_text(encoding="utf-8")):
        what, _, rest = (block["note"] or "").partition(": ")
        match block["kind"], what:
            case "python", ("file" | "append"):
                yield Write(rest, block["text"], adds=what == "append")
            case "sh", "stays up":
                yield StaysUp(rest)
            case "sh", ("" | "ends with"):
                yield Run(tuple(block["text"].splitlines()), int(rest or 0))
            case "", "":
                continue
            case other:
                raise ValueError(other)
