"""Two templates side by side: what an update would add, change, remove, replace, and which queues it would take away. Plain Python."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ops.stack.stateful import Harm, harmed, held

if TYPE_CHECKING:
    from collections.abc import Sequence

Template = Any
# A version is made anew with every change of its function: that is told of the function.
TOLD_ELSEWHERE = frozenset({"AWS::Lambda::Version", "AWS::CDK::Metadata"})
PARAMETER = "Parameter"
QUEUE = "Queue"


@dataclass(frozen=True, slots=True)
class Difference:
    """One resource that an update would touch, and which of its parts."""

    name: str
    kind: str
    deed: str
    parts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Comparison:
    """What an update would do.

    Attributes:
        harms: what it would do to what holds data.
        workers: whose queues it would take away.
    """

    differences: Sequence[Difference]
    harms: Sequence[Harm]
    workers: Sequence[str] = field(default=())

    @property
    def is_same(self) -> bool:
        """Whether there is nothing to do."""
        return not self.differences

    @property
    def sums(self) -> Counter[tuple[str, str]]:
        """How many resources of a type are added, changed, removed."""
        return Counter((each.deed, each.kind) for each in self.differences)


def compared(before: Template, after: Template) -> Comparison:
    """What an update from one template to the other would do."""
    old, new = before["Resources"], after["Resources"]
    differences = [
        each
        for name in sorted(old.keys() | new.keys())
        if (each := _difference(name, old.get(name), new.get(name))) is not None and each.kind not in TOLD_ELSEWHERE
    ]
    given, wanted = before.get("Parameters", {}), after.get("Parameters", {})
    differences += [
        Difference(
            name,
            PARAMETER,
            _deed(name in given, name in wanted),
            tuple(_parts(given.get(name, {}), wanted.get(name, {}))),
        )
        for name in sorted(given.keys() | wanted.keys())
        if given.get(name) != wanted.get(name)
    ]
    outputs = before.get("Outputs", {}).keys() - after.get("Outputs", {}).keys()
    workers = sorted(_hyphened(name.removeprefix(QUEUE)) for name in outputs if name.startswith(QUEUE))
    return Comparison(differences, list(harmed(held(before), held(after))), workers)


def _hyphened(name: str) -> str:
    """A worker's name, as an output spells it: `OrderLines` is `order-lines`."""
    return re.sub("(?<!^)(?=[A-Z])", "-", name).lower()


def _difference(name: str, old: Template | None, new: Template | None) -> Difference | None:
    kind = {**(old or {}), **(new or {})}["Type"]
    if old is None or new is None:
        return Difference(name, kind, _deed(old is not None, new is not None))
    if old == new:
        return None
    parts = {part for part in _parts(old, new) if part != "Properties"}
    parts |= set(_parts(old.get("Properties", {}), new.get("Properties", {})))
    return Difference(name, kind, "changed", tuple(sorted(parts)))


def _deed(was: bool, will_be: bool) -> str:  # noqa: FBT001 - before and after
    return "changed" if was and will_be else "removed" if was else "added"


def _parts(old: Template, new: Template) -> list[str]:
    """The parts in which two of a kind differ."""
    return sorted(part for part in old.keys() | new.keys() if old.get(part) != new.get(part))
