"""Makes alarms that are declared as data (see `infra/alarms/`), and has them tell the topic.

From the L1 constructs: those above put one period on all metrics of an expression and know no band that is one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Fn
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from infra.alarms.alarm import Alarm, Both
from infra.alarms.metric import Expression, Metric

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aws_cdk import IResolvable
    from aws_cdk import aws_sns as sns

    from infra.alarms.alarm import Severity

MOST_METRICS = 10  # in the expression of an alarm (CloudWatch user guide, "CloudWatch service quotas")
WATCHED, BAND = "watched", "band"
STATISTICS = frozenset({"Sum", "Average", "Maximum", "Minimum", "SampleCount"})
_Query = cloudwatch.CfnAlarm.MetricDataQueryProperty
_Dimension = cloudwatch.CfnAlarm.DimensionProperty


class Alarms(Construct):
    """A group of alarms; `made` has the ARN of each that tells somebody, with its severity, `named` all by their names."""

    def __init__(
        self, scope: Construct, construct_id: str, alarms: Iterable[Alarm | Both], *, topic: sns.ITopic
    ) -> None:
        super().__init__(scope, construct_id)
        self._topic = topic
        self.made: list[tuple[Severity, str]] = []
        self.named: dict[str, cloudwatch.CfnAlarm] = {}
        for alarm in alarms:
            arn = self._both(alarm) if isinstance(alarm, Both) else self._one(alarm).attr_arn
            if isinstance(alarm, Both) or alarm.tells:
                self.made.append((alarm.severity, arn))

    def _both(self, both: Both) -> str:
        names = [self._one(part).ref for part in (both.long, both.short)]
        composite = cloudwatch.CfnCompositeAlarm(
            self,
            both.name,
            alarm_rule=Fn.join("", ['ALARM("', names[0], '") AND ALARM("', names[1], '")']),
            alarm_description=both.description,
            alarm_actions=[self._topic.topic_arn],
        )
        return composite.attr_arn

    def _one(self, alarm: Alarm) -> cloudwatch.CfnAlarm:
        made = cloudwatch.CfnAlarm(
            self,
            alarm.name,
            alarm_description=alarm.description,
            alarm_actions=[self._topic.topic_arn] if alarm.tells else None,
            comparison_operator=_comparison(alarm),
            threshold=alarm.threshold,
            threshold_metric_id=None if alarm.band is None else BAND,
            datapoints_to_alarm=alarm.points[0],
            evaluation_periods=alarm.points[1],
            treat_missing_data=alarm.missing.value,
        )
        self.named[alarm.name] = made
        if isinstance(alarm.watched, Metric) and alarm.band is None:
            _watch(made, alarm.watched)
        else:
            made.metrics = _queries(alarm)
        return made


def _comparison(alarm: Alarm) -> str:
    if alarm.band is not None:
        return "GreaterThanUpperThreshold"
    return "GreaterThanOrEqualToThreshold" if alarm.at_least else "GreaterThanThreshold"


def _watch(alarm: cloudwatch.CfnAlarm, metric: Metric) -> None:
    alarm.namespace, alarm.metric_name = metric.namespace, metric.name
    alarm.dimensions = _dimensions(metric)
    alarm.period = int(metric.period.total_seconds())
    if metric.statistic in STATISTICS:
        alarm.statistic = metric.statistic
    else:
        alarm.extended_statistic = metric.statistic


def _queries(alarm: Alarm) -> list[IResolvable | _Query]:
    """The metrics, and what is made of them; a band is returned beside what it is the band of."""
    watched = alarm.watched
    if isinstance(watched, Expression):
        if len(watched.metrics) > MOST_METRICS:
            message = f"alarm {alarm.name!r} is over {len(watched.metrics)} metrics, CloudWatch takes {MOST_METRICS}."
            raise ValueError(message)
        _ = watched.period
        parts: list[IResolvable | _Query] = [
            _stat(name, metric, returned=False) for name, metric in watched.metrics.items()
        ]
        parts.append(_Query(id=WATCHED, expression=watched.text, label=alarm.name, return_data=True))
    else:
        parts = [_stat(WATCHED, watched, returned=True)]
    if alarm.band is None:
        return parts
    band = f"ANOMALY_DETECTION_BAND({WATCHED}, {alarm.band:g})"
    return [*parts, _Query(id=BAND, expression=band, label="Usual", return_data=True)]


def _stat(name: str, metric: Metric, *, returned: bool) -> _Query:
    return _Query(
        id=name,
        metric_stat=cloudwatch.CfnAlarm.MetricStatProperty(
            metric=cloudwatch.CfnAlarm.MetricProperty(
                namespace=metric.namespace, metric_name=metric.name, dimensions=_dimensions(metric)
            ),
            period=int(metric.period.total_seconds()),
            stat=metric.statistic,
        ),
        return_data=returned,
    )


def _dimensions(metric: Metric) -> list[IResolvable | _Dimension]:
    return [_Dimension(name=name, value=value) for name, value in metric.dimensions]
