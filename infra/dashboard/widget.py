"""Widgets of a CloudWatch dashboard as data, and how they are laid out.

Source: CloudWatch API reference, "Dashboard body structure and syntax".
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from infra.alarms.metric import Expression, Metric

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

COLUMNS = 24
GRAPH = (8, 6)  # columns and rows
MOST_ALARMS = 100  # in one widget


@dataclass(frozen=True, slots=True)
class Graph:
    """Lines over time: metrics and expressions by their labels."""

    title: str
    lines: Mapping[str, Metric | Expression]
    unit: str = ""

    size = GRAPH

    def properties(self, region: str) -> dict[str, Any]:
        """As CloudWatch reads it."""
        rows: list[list[Any]] = []
        for place, (label, line) in enumerate(self.lines.items()):
            if isinstance(line, Metric):
                rows.append([*_named(line), {"stat": line.statistic, "label": label}])
                continue
            # Ids hold for a whole widget, and each expression names its own metrics.
            rows += [
                [*_named(metric), {"stat": metric.statistic, "id": f"e{place}{name}", "visible": False}]
                for name, metric in line.metrics.items()
            ]
            rows.append([{"expression": _renamed(line, f"e{place}"), "label": label, "id": f"e{place}"}])
        axis = {"left": {"min": 0, **({"label": self.unit, "showUnits": False} if self.unit else {})}}
        return {
            "view": "timeSeries",
            "region": region,
            "title": self.title,
            "period": 60,
            "yAxis": axis,
            "metrics": rows,
        }

    kind = "metric"


@dataclass(frozen=True, slots=True)
class Heading:
    """What the widgets below it answer."""

    text: str

    size = (COLUMNS, 1)
    kind = "text"

    def properties(self, region: str) -> dict[str, Any]:
        """As CloudWatch reads it."""
        del region
        return {"markdown": f"## {self.text}", "background": "transparent"}


@dataclass(frozen=True, slots=True)
class Alarms:
    """How some alarms stand."""

    title: str
    arns: Sequence[str] = field(default_factory=tuple)

    size = (COLUMNS // 3, 6)
    kind = "alarm"

    def properties(self, region: str) -> dict[str, Any]:
        """As CloudWatch reads it: those that ring come first."""
        del region
        return {"title": self.title, "alarms": list(self.arns), "sortBy": "stateUpdatedTimestamp"}


Widget = Graph | Heading | Alarms


def body(widgets: Iterable[Widget], region: str) -> dict[str, Any]:
    """The body of a dashboard: from left to right, a new row where one is full."""
    placed = []
    x = y = height = 0
    for widget in widgets:
        columns, rows = widget.size
        if x + columns > COLUMNS or isinstance(widget, Heading):
            x, y, height = 0, y + height, 0
        placed.append(
            {
                "type": widget.kind,
                "x": x,
                "y": y,
                "width": columns,
                "height": rows,
                "properties": widget.properties(region),
            }
        )
        x, height = x + columns, max(height, rows)
    return {"widgets": placed}


def _named(metric: Metric) -> list[str]:
    return [metric.namespace, metric.name, *(text for pair in metric.dimensions for text in pair)]


def _renamed(expression: Expression, start: str) -> str:
    """The text with the ids of its metrics as this widget has them; ids are lower case, functions are not."""
    text = expression.text
    for name in sorted(expression.metrics, key=len, reverse=True):
        text = re.sub(rf"\b{name}\b", f"{start}{name}", text)
    return text
