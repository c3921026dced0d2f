"""What a measure works with in its process: its stores, its rounds, and how it takes times."""

from __future__ import annotations

import gc
import os
import statistics
import time
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Value = TypeVar("Value")
VALKEY_PORT, QUICK, SEED = "BENCH_VALKEY_PORT", "BENCH_QUICK", "BENCH_SEED"
MICROSECONDS = 1e6
MILLISECONDS = 1e3


@dataclass(slots=True)
class Bench:
    """One run of a measure.

    Attributes:
        quick: whether few rounds will do.
        random: shuffles; seeded, so that a run can be repeated.
        valkey_port: of the Valkey on this machine, where the measure needs one.
        progress: told the share that is done, from 0 to 1.
    """

    quick: bool = False
    random: Random = field(default_factory=lambda: Random(0))  # noqa: S311 - an order, no secret
    valkey_port: int = 0
    progress: Callable[[float], None] = lambda share: None  # noqa: ARG005 - nobody looks

    @classmethod
    def here(cls, progress: Callable[[float], None]) -> Bench:
        """As the environment of this process says."""
        seed = Random(int(os.environ.get(SEED, "0")))  # noqa: S311 - as above
        return cls(os.environ.get(QUICK) == "1", seed, int(os.environ.get(VALKEY_PORT, "0")), progress)

    def number(self, full: int, quick: int) -> int:
        """How many, by how long the run may take."""
        return quick if self.quick else full

    def rounds(self, sides: Mapping[str, Callable[[], Value]], number: int) -> dict[str, tuple[Value, ...]]:
        """Have each side give a value in each round, in an order that changes; one round before is not counted."""
        found: dict[str, list[Value]] = {name: [] for name in sides}
        for turn in range(number + 1):
            for name in self.random.sample(list(sides), len(sides)):
                gc.collect()  # what the side before has left is not this one's
                value = sides[name]()
                if turn:
                    found[name].append(value)
            self.progress(turn / number)
        return {name: tuple(values) for name, values in found.items()}


def p50(function: Callable[[], object], times: int, clock: Callable[[], float] = time.perf_counter) -> float:
    """The median of what one call takes, in seconds of that clock."""
    return statistics.median(each(function, times, clock))


def each(function: Callable[[], object], times: int, clock: Callable[[], float] = time.perf_counter) -> list[float]:
    """What each call takes, in seconds of that clock."""
    found = []
    for _ in range(times):
        begun = clock()
        function()
        found.append(clock() - begun)
    return found


def percentile(values: list[float], share: float) -> float:
    """The value below which that share lies; the nearest that was seen."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
