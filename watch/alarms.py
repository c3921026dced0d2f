"""The alarms of a template, run over metrics minute by minute."""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from watch.formula import evaluate
from watch.series import Name, WatchError
from watch.state import FARTHER, State, decide
from watch.template import dimension, resources, written
from watch.usual import Usual

if TYPE_CHECKING:
    from collections.abc import Mapping

    from watch.series import Line, Metrics
    from watch.template import Template

_BAND = re.compile(r"ANOMALY_DETECTION_BAND\((\w+), (\d+(?:\.\d+)?)\)")
_RULE = re.compile(r'ALARM\("<(\w+)>"\)(?: AND ALARM\("<(\w+)>"\))*')
_BREACHES = {
    "GreaterThanThreshold": operator.gt,
    "GreaterThanUpperThreshold": operator.gt,
    "GreaterThanOrEqualToThreshold": operator.ge,
}
# CloudWatch takes no data of these for no news, whatever their alarms say.
SPARSE = frozenset({"AWS/DynamoDB"})


@dataclass(frozen=True, slots=True)
class Stat:
    """A metric by a statistic over minutes."""

    name: Name
    statistic: str
    minutes: int


@dataclass(frozen=True, slots=True)
class Alarm:
    """An alarm as the template has it; `band` is the width of the band that is its threshold."""

    stats: Mapping[str, Stat]
    expression: str
    comparison: str
    threshold: float | None
    band: float | None
    needed: int
    of: int
    missing: str

    @property
    def minutes(self) -> int:
        """Of a period."""
        return next(iter(self.stats.values())).minutes

    def watched(self, metrics: Metrics) -> Line:
        """What it watches, over time."""
        lines = {name: metrics.line(stat.name, stat.statistic, stat.minutes) for name, stat in self.stats.items()}
        return evaluate(self.expression, lines, self.minutes)

    def history(self, metrics: Metrics, usual: Usual | None = None) -> list[State]:
        """Its state after each minute; `usual` is what its band was trained on."""
        line = self.watched(metrics)
        edge: Line = [self.threshold] * len(line)
        if self.band is not None:
            edge = (usual or Usual.of(line, metrics.begin)).upper(self.band, len(line), metrics.begin)
        breach = _BREACHES[self.comparison]
        breaches = [
            None if value is None or limit is None else breach(value, limit)
            for value, limit in zip(line, edge, strict=True)
        ]
        states, state = [], State.INSUFFICIENT
        for minute in range(len(breaches)):
            places = range(minute - (self.of + FARTHER - 1) * self.minutes, minute + 1, self.minutes)
            points = [breaches[place] if place >= 0 else None for place in places]
            state = decide(points, self.needed, self.of, self.missing, state)
            states.append(state)
        return states


@dataclass(frozen=True, slots=True)
class Composite:
    """An alarm that rings while all of some others do."""

    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Watch:
    """All alarms of a template, trained on healthy days."""

    alarms: Mapping[str, Alarm]
    composites: Mapping[str, Composite]
    usual: dict[str, Usual] = field(default_factory=dict)

    @classmethod
    def of(cls, template: Template) -> Watch:
        """Read them.

        Raises:
            WatchError: one of them uses what is not known here.
        """
        alarms = {name: _alarm(name, one) for name, one in resources(template, "AWS::CloudWatch::Alarm").items()}
        found = resources(template, "AWS::CloudWatch::CompositeAlarm")
        return cls(alarms, {name: _composite(name, one) for name, one in found.items()})

    def train(self, metrics: Metrics) -> None:
        """Learn what is usual."""
        for name, alarm in self.alarms.items():
            if alarm.band is not None:
                self.usual[name] = Usual.of(alarm.watched(metrics), metrics.begin)

    def histories(self, metrics: Metrics) -> dict[str, list[State]]:
        """The states of every alarm after each minute."""
        found = {name: alarm.history(metrics, self.usual.get(name)) for name, alarm in self.alarms.items()}
        for name, composite in self.composites.items():
            together = zip(*(found[part] for part in composite.parts), strict=True)
            found[name] = [State.ALARM if set(states) == {State.ALARM} else State.OK for states in together]
        return found

    @property
    def names(self) -> set[Stat]:
        """Every metric that they look at."""
        return {stat for alarm in self.alarms.values() for stat in alarm.stats.values()}


def rings(states: list[State]) -> list[int]:
    """The minutes at which an alarm begins to ring, once it has been silent: a new one may not have seen its data yet."""
    begun = states.index(State.OK) if State.OK in states else len(states)
    return [
        minute
        for minute in range(begun + 1, len(states))
        if states[minute] is State.ALARM and states[minute - 1] is not State.ALARM
    ]


def _alarm(logical: str, properties: dict[str, Any]) -> Alarm:
    band = None
    if "Metrics" in properties:
        parts = properties["Metrics"]
        stats = {part["Id"]: _stat(part["MetricStat"]) for part in parts if "MetricStat" in part}
        texts = {part["Id"]: part["Expression"] for part in parts if "Expression" in part}
        if (limit := properties.get("ThresholdMetricId")) is not None:
            match = _BAND.fullmatch(texts.pop(limit))
            if match is None:
                raise WatchError(f"{logical}: its threshold is no ANOMALY_DETECTION_BAND.")
            band = float(match[2])
        (expression,) = texts.values()
    else:
        statistic = properties.get("Statistic") or properties["ExtendedStatistic"]
        stats = {"watched": _stat({"Metric": properties, "Stat": statistic, "Period": properties["Period"]})}
        expression = "watched"
    if len({stat.minutes for stat in stats.values()}) != 1:
        raise WatchError(
            f"{logical}: its metrics are of several periods, of which CloudWatch's documentation tells nothing."
        )
    missing = properties["TreatMissingData"]
    if any(stat.name.namespace in SPARSE for stat in stats.values()):
        missing = "ignore"
    return Alarm(
        stats,
        expression,
        properties["ComparisonOperator"],
        properties.get("Threshold"),
        band,
        properties["DatapointsToAlarm"],
        properties["EvaluationPeriods"],
        missing,
    )


def _stat(found: dict[str, Any]) -> Stat:
    metric = found["Metric"]
    dimensions = {each["Name"]: dimension(each["Name"], each["Value"]) for each in metric["Dimensions"]}
    name = Name.of(metric["Namespace"], metric["MetricName"], dimensions)
    return Stat(name, found["Stat"], int(found["Period"]) // 60)


def _composite(logical: str, properties: dict[str, Any]) -> Composite:
    rule = written(properties["AlarmRule"])
    if _RULE.fullmatch(rule) is None:
        raise WatchError(f"{logical}: {rule!r} is a rule that watch/alarms.py does not know.")
    return Composite(tuple(re.findall(r"<(\w+)>", rule)))
