"""The part of CloudWatch's metric math that our expressions use; whatever else stands in one is refused by name.

A point without data makes every result without data that needs it; only FILL puts something there, and IF needs but the side
that it takes. Source: CloudWatch user guide, "Using math expressions with CloudWatch metrics".
"""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from watch.series import WatchError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from watch.series import Line

    Operation = Callable[[float, float], float]

_TOKEN = re.compile(r"\s*(?:(\d+(?:\.\d+)?(?:e[+-]?\d+)?)|([A-Za-z_]\w*)|(>=|<=|==|!=|[-+*/()<>,]))")
# From the loosest to the tightest.
_LEVELS: tuple[dict[str, Operation], ...] = (
    {"OR": lambda a, b: float(bool(a) or bool(b))},
    {"AND": lambda a, b: float(bool(a) and bool(b))},
    {
        ">": lambda a, b: float(a > b),
        ">=": lambda a, b: float(a >= b),
        "<": lambda a, b: float(a < b),
        "<=": lambda a, b: float(a <= b),
        "==": lambda a, b: float(a == b),
        "!=": lambda a, b: float(a != b),
    },
    {"+": operator.add, "-": operator.sub},
    {"*": operator.mul, "/": operator.truediv},
)


def evaluate(text: str, lines: Mapping[str, Line], step: int) -> Line:
    """The line of an expression over lines of equal length.

    Args:
        text: as it stands in the template.
        lines: what its ids stand for.
        step: minutes of their period; the point before one lies that far back.

    Raises:
        WatchError: it holds something that is not known here.
    """
    parser = _Parser(_tokens(text), dict(lines), step)
    found = parser.loosest(0)
    if parser.rest:
        raise WatchError(f"{text!r}: {parser.rest[0]!r} is not expected there.")
    return found


def _tokens(text: str) -> list[str]:
    found, place = [], 0
    while place < len(text.rstrip()):
        match = _TOKEN.match(text, place)
        if match is None:
            raise WatchError(
                f"{text!r}: {text[place:].strip()[:1]!r} is an operator that watch/formula.py does not know."
            )
        found.append(match[0].strip())
        place = match.end()
    return found


@dataclass(slots=True)
class _Parser:
    """Computes while it reads."""

    rest: list[str]
    lines: dict[str, Line]
    step: int
    length: int = field(init=False)

    def __post_init__(self) -> None:
        self.length = len(next(iter(self.lines.values()), []))

    def loosest(self, level: int) -> Line:
        """Read operators of a level and all that bind tighter."""
        if level == len(_LEVELS):
            return self._operand()
        found = self.loosest(level + 1)
        while self.rest and self.rest[0] in _LEVELS[level]:
            operation = _LEVELS[level][self.rest.pop(0)]
            found = [_apply(operation, a, b) for a, b in zip(found, self.loosest(level + 1), strict=True)]
        return found

    def _operand(self) -> Line:
        if not self.rest:
            raise WatchError("The expression ends too early.")
        word = self.rest.pop(0)
        if word == "(":
            found = self.loosest(0)
            self._expect(")")
            return found
        if word == "-":
            return [None if value is None else -value for value in self._operand()]
        if word[0].isdigit():
            return [float(word)] * self.length
        if self.rest[:1] == ["("]:
            return self._call(word)
        if word not in self.lines:
            raise WatchError(f"{word!r} is no id of this expression's metrics.")
        return self.lines[word]

    def _call(self, function: str) -> Line:
        self._expect("(")
        arguments = [self.loosest(0)]
        while self.rest[:1] == [","]:
            self.rest.pop(0)
            arguments.append(self.loosest(0))
        self._expect(")")
        match function, arguments:
            case "FILL", [line, filler]:
                return [other if value is None else value for value, other in zip(line, filler, strict=True)]
            case "IF", [condition, yes, no]:
                sides = zip(condition, yes, no, strict=True)
                return [None if value is None else a if value else b for value, a, b in sides]
            case "DIFF", [line]:
                before: Line = [*(None for _ in range(self.step)), *line]
                return [_apply(operator.sub, value, old) for value, old in zip(line, before, strict=False)]
            case _:
                raise WatchError(
                    f"{function} with {len(arguments)} arguments is a function that watch/formula.py does not know."
                )

    def _expect(self, token: str) -> None:
        if self.rest[:1] != [token]:
            raise WatchError(f"{token!r} is expected where the expression has {self.rest[:1] or ['its end']}.")
        self.rest.pop(0)


def _apply(operation: Operation, a: float | None, b: float | None) -> float | None:
    """No data where a side has none, or where it would be divided by zero."""
    if a is None or b is None:
        return None
    try:
        return operation(a, b)
    except ZeroDivisionError:
        return None
