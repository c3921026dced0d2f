"""What a benchmark declares: its measures, the figures that each gives, and the bounds that they must keep."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from benchmarks.bench import Bench

Round = TypeVar("Round")
TOLERANCE = 0.15  # share by which a ratio may be worse than the one kept, before that is a fall


class Store(StrEnum):
    """A server that a measure needs, in a process of its own."""

    VALKEY = "a real Valkey"
    MOTO = "moto's server"
    STUB = "a DynamoDB that answers at once"


class Of(StrEnum):
    """What a bound is on."""

    RATIO = "ours / peer"
    OURS = "ours"


@dataclass(frozen=True, slots=True)
class Target:
    """A bound, on one side: the other is None."""

    of: Of = Of.RATIO
    at_most: float | None = None
    at_least: float | None = None

    def is_met(self, value: float) -> bool:
        """Whether a value is within the bound."""
        return (self.at_most is None or value <= self.at_most) and (self.at_least is None or value >= self.at_least)

    @property
    def text(self) -> str:
        """As it stands in a table."""
        return f"{'' if self.of is Of.RATIO else 'ours '}{'≥' if self.at_most is None else '≤'} {self.bound:.3g}"

    @property
    def bound(self) -> float:
        """The bound itself."""
        return (self.at_least or 0.0) if self.at_most is None else self.at_most


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table: ours beside a peer's, in the same unit and the same rounds.

    Attributes:
        name: of the figure within its measure.
        what: is measured, in words.
        unit: of both values.
        peer: who stands beside us; empty where nobody does.
        target: the bound; None where the figure is only shown.
        more_is_better: of the values, and so of their ratio.
        tolerance: share by which the ratio (without a peer: ours) may be worse than the one kept.
        yardstick: whether the other side is no rival but a measure of size, beside which nothing can be lost.
        drawn: whether it is in the plot; not where many say the same.
        remark: why the peer wins where it does.
    """

    name: str
    what: str
    unit: str
    peer: str = ""
    target: Target | None = None
    more_is_better: bool = False
    tolerance: float = TOLERANCE
    yardstick: bool = False
    drawn: bool = True
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Sample:
    """What was measured of one figure: a value for each round, ours and the peer's of the same rounds.

    Attributes:
        more: further values by name, such as percentiles; in the figure's unit.
    """

    ours: tuple[float, ...]
    peer: tuple[float, ...] = ()
    more: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, ours: Iterable[Round], peer: Iterable[Round], value: Callable[[Round], float]) -> Sample:
        """One value out of what each round gave."""
        return cls(tuple(map(value, ours)), tuple(map(value, peer)))


@dataclass(frozen=True, slots=True)
class Measure:
    """A module of `benchmarks.measures`: what it gives, what it needs, and the function that measures.

    Attributes:
        name: by which `--only` chooses it.
        title: a line.
        explanation: how it is measured, and what that leaves out.
        figures: what it gives, each once.
        stores: servers that are started for it.
        pinned: whether its servers keep off the first core, where its workers are.
        own_environment: whether it runs in the project's own environment, since no peer takes part.
    """

    name: str
    title: str
    explanation: str
    figures: tuple[Figure, ...]
    run: Callable[[Bench], Mapping[str, Sample]]
    stores: frozenset[Store] = frozenset()
    pinned: bool = False
    own_environment: bool = False
