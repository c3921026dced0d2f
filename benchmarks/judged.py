"""What samples say: medians, the ratio with its interval, whether targets are met and what has fallen. Arithmetic alone."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

from benchmarks.declared import Of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.declared import Figure, Measure, Sample

RESAMPLES = 2000
INTERVAL = 0.95  # of the resampled medians


@dataclass(frozen=True, slots=True)
class Found:
    """A figure as it was measured.

    Attributes:
        ours, peer: medians over the rounds; no peer, no value.
        ratio: the median of the rounds' ratios, ours / peer.
        low, high: the interval of that median, by resampling the rounds.
        rounds: how many there were.
        more: further values by name.
    """

    ours: float
    peer: float | None = None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    rounds: int = 1
    more: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, sample: Sample) -> Found:
        """Out of the rounds.

        Raises:
            ValueError: the sides have not the same rounds.
        """
        ours = statistics.median(sample.ours)
        if not sample.peer:
            return cls(ours, rounds=len(sample.ours), more=sample.more)
        ratios = [mine / other for mine, other in zip(sample.ours, sample.peer, strict=True)]
        low, high = interval(ratios)
        peer = statistics.median(sample.peer)
        return cls(ours, peer, statistics.median(ratios), low, high, len(ratios), sample.more)

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> Found:
        """Out of the JSON."""
        return cls(**fields)

    def value(self, of: Of) -> float:
        """What a bound is on."""
        return self.ours if of is Of.OURS or self.ratio is None else self.ratio


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Where the median of such values lies, by the bootstrap: always the same for the same values."""
    random = Random(1)  # noqa: S311 - repeatable
    medians = sorted(statistics.median(random.choices(values, k=len(values))) for _ in range(RESAMPLES))
    cut = int(RESAMPLES * (1 - INTERVAL) / 2)
    return medians[cut], medians[-1 - cut]


def bounded(figure: Figure) -> Of:
    """What of a figure is judged: its ratio, unless its target is on ours."""
    return Of.RATIO if figure.target is None else figure.target.of


def is_met(figure: Figure, found: Found) -> bool | None:
    """Whether the target is met; None where there is none."""
    return None if figure.target is None else figure.target.is_met(found.value(figure.target.of))


def is_lost(figure: Figure, found: Found) -> bool:
    """Whether the target is missed, or the peer is better."""
    if is_met(figure, found) is False:
        return True
    if found.ratio is None or figure.yardstick:
        return False
    return found.ratio < 1 if figure.more_is_better else found.ratio > 1


def has_fallen(figure: Figure, found: Found, kept: Found) -> bool:
    """Whether the ratio (ours where nobody stands beside it) is worse than the one kept by more than its tolerance."""
    now, before = found.value(bounded(figure)), kept.value(bounded(figure))
    if figure.more_is_better:
        return now < before * (1 - figure.tolerance)
    return now > before * (1 + figure.tolerance)


def complaints(
    measures: Sequence[Measure], found: Mapping[str, Mapping[str, Found]], kept: Mapping[str, Mapping[str, Found]]
) -> list[str]:
    """A sentence for each target that is missed, each fall, and each figure that was not measured, of the measures run."""
    said = []
    for measure in measures:
        if measure.name not in found:
            continue
        for figure in measure.figures:
            name = f"{measure.name}/{figure.name}"
            now = found[measure.name].get(figure.name)
            if now is None:
                said.append(f"{name} was not measured")
                continue
            if figure.target is not None and not figure.target.is_met(now.value(figure.target.of)):
                said.append(
                    f"{name} misses its target: {now.value(figure.target.of):.3g}, {figure.target.text} is asked"
                )
            before = kept.get(measure.name, {}).get(figure.name)
            if before is not None and has_fallen(figure, now, before):
                of = bounded(figure)
                said.append(
                    f"{name} has fallen: {now.value(of):.3g}, kept is {before.value(of):.3g}"
                    f" and {figure.tolerance:.0%} are tolerated"
                )
    return said
