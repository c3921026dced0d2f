"""What is measured of a queue and of a function, by the minute; alarms and dashboard look at the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch

from shared.telemetry import JOB_TYPE, NAMESPACE

if TYPE_CHECKING:
    from aws_cdk import aws_lambda as lambda_
    from aws_cdk import aws_sqs as sqs

MINUTE = Duration.minutes(1)
VISIBLE = "ApproximateNumberOfMessagesVisible"
IN_FLIGHT = "ApproximateNumberOfMessagesNotVisible"
OLDEST = "ApproximateAgeOfOldestMessage"


def queue_metric(queue: sqs.IQueue, name: str) -> cloudwatch.Metric:
    """A metric of a queue: the highest value of each minute."""
    return cloudwatch.Metric(
        namespace="AWS/SQS",
        metric_name=name,
        dimensions_map={"QueueName": queue.queue_name},
        statistic="Maximum",
        period=MINUTE,
    )


def function_metric(function: lambda_.IFunction, name: str, statistic: str) -> cloudwatch.Metric:
    """A metric of a function by the minute."""
    return cloudwatch.Metric(
        namespace="AWS/Lambda",
        metric_name=name,
        dimensions_map={"FunctionName": function.function_name},
        statistic=statistic,
        period=MINUTE,
    )


def own_metric(name: str, *, service: str, job_type: str) -> cloudwatch.Metric:
    """A metric that the functions write themselves: the highest value of each minute."""
    return cloudwatch.Metric(
        namespace=NAMESPACE,
        metric_name=name,
        dimensions_map={"service": service, JOB_TYPE: job_type},
        statistic="Maximum",
        period=MINUTE,
    )


def arrivals(queue: sqs.IQueue) -> cloudwatch.MathExpression:
    """How many more messages a queue holds than a minute before.

    Reading a message hides it, so what is in flight counts too; a queue that was idle reports nothing, which is zero.
    A minute whose data is late reads zero as well: the alarm on it looks back over some minutes, and may report as an
    arrival what lay there before such a gap.
    """
    return cloudwatch.MathExpression(
        expression="DIFF(FILL(visible, 0) + FILL(inflight, 0))",
        using_metrics={"visible": queue_metric(queue, VISIBLE), "inflight": queue_metric(queue, IN_FLIGHT)},
        label="Arrivals",
        period=MINUTE,
    )
