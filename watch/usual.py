"""What is usual: a stand-in for the model that CloudWatch trains for an anomaly detection band.

CloudWatch's own knows the hour, the day and the week, and cannot be had here. This one takes from healthy days the mean and the
spread of each half hour, which is enough to see what a band of some width notices and what it lets pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean, pstdev
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from watch.series import Line

DAY = 24 * 60
BIN = 30
LEAST_SPREAD = 0.1  # of the mean: nothing is so even that its next value is known


@dataclass(frozen=True, slots=True)
class Usual:
    """The mean and the spread of a line, by half hours of a day; None where it never had data."""

    bins: Sequence[tuple[float, float] | None]

    @classmethod
    def of(cls, line: Line, begin: int = 0) -> Usual:
        """Learn from whole days, of which the first begins at that minute."""
        values: list[list[float]] = [[] for _ in range(DAY // BIN)]
        for minute, value in enumerate(line):
            if value is not None:
                values[(begin + minute) % DAY // BIN].append(value)
        return cls([(fmean(some), max(pstdev(some), LEAST_SPREAD * fmean(some))) if some else None for some in values])

    def upper(self, width: float, minutes: int, begin: int) -> Line:
        """The upper edge of a band of so many spreads, from a minute of a day on."""
        edges = [None if known is None else known[0] + width * known[1] for known in self.bins]
        return [edges[(begin + minute) % DAY // BIN] for minute in range(minutes)]
