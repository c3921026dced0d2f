"""Recorded metrics as a file: small enough to be kept, and read by the test that no widget is empty."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from watch.series import Metrics, Name

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Recording:
    """Metrics of a real run, whose minutes last `minute_seconds`: the local stage's pace is a tenth."""

    metrics: Metrics
    minute_seconds: float

    def write(self, file: Path) -> None:
        """Write it, one metric a line."""
        lines = []
        for name in sorted(self.metrics.names, key=lambda each: (each.namespace, each.metric, each.subject)):
            samples = {str(minute): _short(values) for minute, values in sorted(self.metrics.samples(name).items())}
            lines.append(json.dumps([name.namespace, name.metric, dict(sorted(name.dimensions)), samples]))
        head = json.dumps({"minutes": self.metrics.minutes, "minute_seconds": self.minute_seconds})
        file.write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, file: Path) -> Recording:
        """Read what was written."""
        head, *lines = map(json.loads, file.read_text(encoding="utf-8").splitlines())
        metrics = Metrics(head["minutes"])
        for namespace, metric, dimensions, samples in lines:
            for minute, values in samples.items():
                metrics.put(Name.of(namespace, metric, dimensions), int(minute), values)
        return cls(metrics, head["minute_seconds"])


def _short(values: object) -> list[float]:
    assert isinstance(values, list)  # noqa: S101 - as they are kept
    return [round(value) if value == round(value) else round(value, 1) for value in values]
