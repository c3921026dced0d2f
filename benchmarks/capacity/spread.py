"""How long a job takes, as a distribution: a mean, and factors around it that were measured. Knows no queue."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

EVEN = (1.0,)


@dataclass(frozen=True, slots=True)
class Spread:
    """A time in seconds.

    Attributes:
        mean: in seconds.
        factors: sorted, their mean is 1: how other times are than the mean. One factor is no spread.
    """

    mean: float
    factors: tuple[float, ...] = EVEN

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Spread:
        """The distribution of measured seconds."""
        mean = fmean(seconds)
        return cls(mean, tuple(sorted(each / mean for each in seconds)) if mean else EVEN)

    def draw(self, random: Random) -> float:
        """A time in seconds, by chance."""
        return self.mean * random.choice(self.factors)

    def longest_of(self, number: float) -> float:
        """The mean of the longest of so many, in seconds: exact for whole numbers, between them interpolated."""
        low = math.floor(number)
        if number == low:
            return self.mean * _mean_of_the_largest(self.factors, max(low, 1))
        part = number - low
        below, above = (_mean_of_the_largest(self.factors, max(each, 1)) for each in (low, low + 1))
        return self.mean * (below + part * (above - below))


def _mean_of_the_largest(factors: tuple[float, ...], number: int) -> float:
    """Of so many drawn with replacement: each factor times the chance that it is the largest."""
    many = len(factors)
    chances = ((place / many) ** number for place in range(many + 1))
    return sum(
        factor * (until - since) for factor, (since, until) in zip(factors, itertools.pairwise(chances), strict=True)
    )
