"""Metrics by the minute, as CloudWatch keeps them, and their statistics over periods."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from shared.errors import TahanError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Line = list[float | None]  # a value for each minute: of the period that ends with it; None where there is no data


class WatchError(TahanError):
    """The template uses something of CloudWatch that this tool does not know: teach it, or use something else."""


@dataclass(frozen=True, slots=True)
class Name:
    """What CloudWatch knows a metric by."""

    namespace: str
    metric: str
    dimensions: frozenset[tuple[str, str]]

    @classmethod
    def of(cls, namespace: str, metric: str, dimensions: Mapping[str, str]) -> Name:
        """The name of a metric with these dimensions."""
        return cls(namespace, metric, frozenset(dimensions.items()))

    @property
    def subject(self) -> str:
        """Whose it is: the values of its dimensions."""
        return " ".join(value for _, value in sorted(self.dimensions))


@dataclass(slots=True)
class Metrics:
    """Samples of metrics, by the minute they fell into. A metric that nobody put has no data.

    Attributes:
        minutes: how many there are.
        begin: the minute of a day that is the first.
    """

    minutes: int
    begin: int = 0
    _samples: defaultdict[Name, dict[int, list[float]]] = field(default_factory=lambda: defaultdict(dict))

    def put(self, name: Name, minute: int, samples: Iterable[float]) -> None:
        """Add samples; what is no finite number CloudWatch would refuse.

        Raises:
            WatchError: a sample is none.
        """
        found = list(samples)
        if not all(math.isfinite(sample) for sample in found):
            raise WatchError(f"{name.metric}: a sample is no finite number.")
        if found:
            self._samples[name].setdefault(minute, []).extend(found)

    def change(self, name: Name, minute: int, samples: Sequence[float]) -> None:
        """Put these in the place of what there is; none at all is a minute without data."""
        self._samples[name].pop(minute, None)
        self.put(name, minute, samples)

    @property
    def names(self) -> list[Name]:
        """Of all that has data."""
        return [name for name, samples in self._samples.items() if samples]

    def samples(self, name: Name) -> Mapping[int, Sequence[float]]:
        """What was put for a metric, by the minute."""
        return self._samples.get(name, {})

    def line(self, name: Name, statistic: str, minutes: int) -> Line:
        """A statistic over the `minutes` that end with each minute: a period moves on with every evaluation."""
        samples = self.samples(name)
        found: Line = []
        for end in range(self.minutes):
            window = [
                value for minute in range(max(0, end - minutes + 1), end + 1) for value in samples.get(minute, ())
            ]
            found.append(compute(statistic, window) if window else None)
        return found


def compute(statistic: str, values: Sequence[float]) -> float:
    """A statistic of CloudWatch over samples.

    Raises:
        WatchError: there is no such statistic.
    """
    match statistic:
        case "Sum":
            return sum(values)
        case "Average":
            return sum(values) / len(values)
        case "Maximum":
            return max(values)
        case "Minimum":
            return min(values)
        case "SampleCount":
            return len(values)
        case _ if statistic.startswith("p") and statistic[1:].replace(".", "", 1).isdigit():
            rank = math.ceil(float(statistic[1:]) / 100 * len(values))
            return sorted(values)[max(rank, 1) - 1]
        case _:
            raise WatchError(f"{statistic!r} is a statistic that watch/series.py does not know.")
