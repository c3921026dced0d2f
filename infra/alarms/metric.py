"""What is measured: metrics of AWS and of the product, and expressions over them. Alarms and dashboard use the same."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from shared.metrics import KINDS
from shared.telemetry import NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Mapping

MINUTE = timedelta(minutes=1)
VISIBLE = "ApproximateNumberOfMessagesVisible"
IN_FLIGHT = "ApproximateNumberOfMessagesNotVisible"
OLDEST = "ApproximateAgeOfOldestMessage"
SENT = "NumberOfMessagesSent"
DELETED = "NumberOfMessagesDeleted"


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric, by its statistic over a period. Values of dimensions may be tokens of CDK."""

    namespace: str
    name: str
    dimensions: tuple[tuple[str, str], ...]
    statistic: str = "Sum"
    period: timedelta = MINUTE

    def over(self, period: timedelta) -> Metric:
        """The same over another period."""
        return replace(self, period=period)

    def by(self, statistic: str) -> Metric:
        """The same by another statistic."""
        return replace(self, statistic=statistic)


@dataclass(frozen=True, slots=True)
class Expression:
    """Metric math over metrics by their ids, all of one period."""

    text: str
    metrics: Mapping[str, Metric]

    @property
    def period(self) -> timedelta:
        """The period of all of them.

        Raises:
            ValueError: they have several; what CloudWatch makes of that is not documented.
        """
        (period,) = {metric.period for metric in self.metrics.values()}
        return period

    def over(self, period: timedelta) -> Expression:
        """The same over another period."""
        return replace(self, metrics={name: metric.over(period) for name, metric in self.metrics.items()})


def of_queue(queue: str, name: str, statistic: str = "Maximum") -> Metric:
    """A metric of a queue."""
    return Metric("AWS/SQS", name, (("QueueName", queue),), statistic)


def of_function(function: str, name: str, statistic: str = "Sum") -> Metric:
    """A metric of a function."""
    return Metric("AWS/Lambda", name, (("FunctionName", function),), statistic)


def of_table(table: str, name: str, *, operation: str | None = None, statistic: str = "Sum") -> Metric:
    """A metric of a table, of one operation on it where DynamoDB tells them apart."""
    dimensions = (("TableName", table),) if operation is None else (("TableName", table), ("Operation", operation))
    return Metric("AWS/DynamoDB", name, dimensions, statistic)


def of_cache(cache: str, name: str, statistic: str = "Sum") -> Metric:
    """A metric of a serverless cache, which CloudWatch knows by its name."""
    return Metric("AWS/ElastiCache", name, (("clusterId", cache),), statistic)


def of_api(api: str, name: str, statistic: str = "Sum") -> Metric:
    """A metric of an HTTP API."""
    return Metric("AWS/ApiGateway", name, (("ApiId", api),), statistic)


def own(service: str, name: str, statistic: str = "Sum") -> Metric:
    """A metric that a service of ours writes, over all job types.

    Raises:
        KeyError: nobody writes it.
    """
    return Metric(NAMESPACE, KINDS[name].name, (("service", service),), statistic)


def share(part: Metric, whole: Metric, least: int) -> Expression:
    """Percent of one metric in another that holds it, zero below `least`."""
    text = f"IF(FILL(whole, 0) >= {least}, 100 * FILL(part, 0) / FILL(whole, 1), 0)"
    return Expression(text, {"part": part, "whole": whole})


def share_of_all(part: Metric, others: Mapping[str, Metric], *, least: int, failures: int) -> Expression:
    """Percent of one metric in the sum of it and others; zero if that is below `least`, or the metric below `failures`.

    A few fail every day, and in a quiet hour each of them is a large share.
    """
    whole = " + ".join(f"FILL({name}, 0)" for name in ("part", *others))
    condition = f"{whole} >= {least} AND FILL(part, 0) >= {failures}"
    return Expression(f"IF({condition}, 100 * FILL(part, 0) / ({whole}), 0)", {"part": part, **others})


def total(metrics: Mapping[str, Metric]) -> Expression:
    """The sum of metrics of which some may be silent."""
    return Expression(" + ".join(f"FILL({name}, 0)" for name in metrics), metrics)
