"""The dashboard of a template: its widgets, and their lines over metrics."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from watch.alarms import Stat
from watch.formula import evaluate
from watch.series import Name, WatchError
from watch.template import dimension, resources, written

if TYPE_CHECKING:
    from collections.abc import Mapping

    from watch.series import Line, Metrics
    from watch.template import Template


@dataclass(frozen=True, slots=True)
class Widget:
    """A widget and its place.

    Attributes:
        kind: "metric", "text" or "alarm".
        alarms: logical names of those that it shows.
        shown: what each visible line is, by its label: an id of `stats`, or an expression over them.
    """

    kind: str
    title: str
    box: tuple[int, int, int, int]
    alarms: tuple[str, ...]
    stats: Mapping[str, Stat]
    shown: Mapping[str, str]
    unit: str

    def lines(self, metrics: Metrics) -> dict[str, Line]:
        """Its lines by their labels."""
        known = {name: metrics.line(stat.name, stat.statistic, stat.minutes) for name, stat in self.stats.items()}
        return {label: evaluate(text, known, 1) for label, text in self.shown.items()}

    def lines_with_data(self, metrics: Metrics) -> dict[str, Line]:
        """Those that have been recorded: FILL makes a line of nothing, which is no data."""
        had = {name for name, stat in self.stats.items() if metrics.samples(stat.name)}
        return {label: line for label, line in self.lines(metrics).items() if _ids(self.shown[label]) & had}


def widgets(template: Template) -> list[Widget]:
    """All widgets of the template's one dashboard.

    Raises:
        WatchError: it has not just one.
    """
    found = resources(template, "AWS::CloudWatch::Dashboard")
    if len(found) != 1:
        raise WatchError(f"The template has {len(found)} dashboards.")
    (properties,) = found.values()
    return [_widget(each) for each in json.loads(written(properties["DashboardBody"]))["widgets"]]


def _widget(found: dict[str, Any]) -> Widget:
    properties = found["properties"]
    stats: dict[str, Stat] = {}
    shown: dict[str, str] = {}
    for place, row in enumerate(properties.get("metrics", ())):
        if isinstance(row[0], dict):
            shown[row[0]["label"]] = row[0]["expression"]
            continue
        namespace, metric, *dimensions, options = row
        pairs = dict(zip(dimensions[::2], dimensions[1::2], strict=True))
        name = Name.of(namespace, metric, {key: dimension(key, value) for key, value in pairs.items()})
        known = options.get("id", f"m{place}")
        stats[known] = Stat(name, options["stat"], properties["period"] // 60)
        if options.get("visible", True):
            shown[options["label"]] = known
    return Widget(
        found["type"],
        properties.get("title") or properties["markdown"].lstrip("# "),
        (found["x"], found["y"], found["width"], found["height"]),
        tuple(arn.strip("<>") for arn in properties.get("alarms", ())),
        stats,
        shown,
        properties.get("yAxis", {}).get("left", {}).get("label", ""),
    )


def _ids(text: str) -> set[str]:
    return set(re.findall(r"[a-z]\w*", text))
