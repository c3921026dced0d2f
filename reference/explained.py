"""What a docstring says of each attribute or argument."""

from __future__ import annotations

import inspect
import re

PARTS = ("Attributes", "Args")
_ENTRY = re.compile(r"^ {4}(\w+): (.*(?:\n {8,}.*)*)", re.MULTILINE)


class UnexplainedError(Exception):
    """A setting or an option has no sentence: give it one in the docstring of what declares it."""


def explained(owner: object) -> dict[str, str]:
    """The sentences of a docstring's attributes or arguments, by name, each in one line."""
    text = inspect.getdoc(owner) or ""
    found: dict[str, str] = {}
    for part in PARTS:
        section = re.search(rf"^{part}:\n((?: .*\n?|\n)+)", text, re.MULTILINE)
        if section is not None:
            found |= {name: " ".join(sentence.split()) for name, sentence in _ENTRY.findall(section[1])}
    return found


def in_cell(text: object) -> str:
    """A text as it may stand in a table's cell."""
    return " ".join(str(text).split()).replace("|", "\\|")
