"""The first thing to look at: one row a worker, and one for whatever reads a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from infra.constructs.metrics import IN_FLIGHT, MINUTE, OLDEST, VISIBLE, function_metric, queue_metric

if TYPE_CHECKING:
    from aws_cdk import aws_lambda as lambda_
    from aws_cdk import aws_sqs as sqs

    from infra.constructs.queue_pair import QueuePair


class Dashboard(Construct):
    """A dashboard that grows by a row with each worker."""

    def __init__(self, scope: Construct, construct_id: str) -> None:
        super().__init__(scope, construct_id)
        self._dashboard = cloudwatch.Dashboard(self, "Dashboard")

    def add_worker(self, name: str, queues: QueuePair, function: lambda_.IFunction) -> None:
        """Show flow, age, dead letters and function of a worker."""
        source, dead = queues.source, queues.dead_letters
        self._row(
            _graph(f"{name}: sent and deleted", *[_sum(source, f"NumberOfMessages{n}") for n in ("Sent", "Deleted")]),
            _graph(f"{name}: depth", queue_metric(source, VISIBLE), queue_metric(source, IN_FLIGHT)),
            _graph(f"{name}: age of the oldest message", queue_metric(source, OLDEST)),
            _graph(f"{name}: dead letters", queue_metric(dead, VISIBLE), queue_metric(dead, IN_FLIGHT)),
            _graph(
                f"{name}: errors and throttles", *[function_metric(function, n, "Sum") for n in ("Errors", "Throttles")]
            ),
            _graph(f"{name}: duration", *[function_metric(function, "Duration", s) for s in ("p50", "p99")]),
        )

    def add_stream(self, name: str, function: lambda_.IFunction, failures: sqs.IQueue) -> None:
        """Show lag and failures of a function that reads a table's stream."""
        self._row(
            _graph(f"{name}: lag", function_metric(function, "IteratorAge", "Maximum")),
            _graph(f"{name}: errors", function_metric(function, "Errors", "Sum")),
            _graph(f"{name}: given up", queue_metric(failures, VISIBLE)),
        )

    def _row(self, *widgets: cloudwatch.IWidget) -> None:
        self._dashboard.add_widgets(*widgets)


def _graph(title: str, *metrics: cloudwatch.IMetric) -> cloudwatch.GraphWidget:
    return cloudwatch.GraphWidget(title=title, left=list(metrics), width=8, height=5, period=MINUTE)


def _sum(queue: sqs.IQueue, name: str) -> cloudwatch.Metric:
    return queue_metric(queue, name).with_(statistic="Sum")
