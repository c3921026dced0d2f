"""Alarms of a worker, of whatever reads a stream, and of the sweeper. Each says what it saw and which runbook of `docs/runbooks/` to open.

An idle queue reports nothing, so missing data is no breach, but for what is reported every minute whatever happens.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from constructs import Construct

from infra.constructs.metrics import MINUTE, OLDEST, VISIBLE, arrivals, function_metric, own_metric, queue_metric
from infra.constructs.queue_pair import SHORTEST_REST
from shared.telemetry import NO_JOB_TYPE

if TYPE_CHECKING:
    from aws_cdk import aws_apigatewayv2 as apigateway
    from aws_cdk import aws_lambda as lambda_
    from aws_cdk import aws_sns as sns
    from aws_cdk import aws_sqs as sqs

    from infra.constructs.queue_pair import QueuePair
    from shared.worker import Worker

TO_DECIDE = timedelta(days=2)
# A queue's age metric counts from the move, retention from the first enqueue: the alarm must come before the sooner end.
OLDEST_DEAD_LETTER = SHORTEST_REST - TO_DECIDE
LONGEST_IN_OUTBOX = timedelta(minutes=5)
OLDEST_STREAM_RECORD = timedelta(seconds=60)
ABOVE = cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD
AT_LEAST = cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD


class _Alarms(Construct):
    def __init__(self, scope: Construct, construct_id: str, *, topic: sns.ITopic) -> None:
        super().__init__(scope, construct_id)
        self._topic = topic

    def _watch(  # noqa: PLR0913 - what an alarm is made of
        self,
        construct_id: str,
        metric: cloudwatch.IMetric,
        threshold: float,
        *,
        sentence: str,
        runbook: str,
        operator: cloudwatch.ComparisonOperator = ABOVE,
        breaches: int = 1,
        periods: int = 1,
        missing: cloudwatch.TreatMissingData = cloudwatch.TreatMissingData.NOT_BREACHING,
    ) -> None:
        alarm = cloudwatch.Alarm(
            self,
            construct_id,
            metric=metric,
            threshold=threshold,
            comparison_operator=operator,
            datapoints_to_alarm=breaches,
            evaluation_periods=periods,
            treat_missing_data=missing,
            alarm_description=f"{sentence} Runbook: docs/runbooks/{runbook}.md",
        )
        alarm.add_alarm_action(actions.SnsAction(self._topic))


class QueueAlarms(_Alarms):
    """Alarms of a worker's two queues."""

    def __init__(
        self, scope: Construct, construct_id: str, *, worker: Worker, queues: QueuePair, topic: sns.ITopic
    ) -> None:
        super().__init__(scope, construct_id, topic=topic)
        objective = worker.max_latency.total_seconds()
        self._watch(
            "QueueAge",
            queue_metric(queues.source, OLDEST),
            objective,
            sentence=f"The oldest message of worker {worker.name} waits longer than its objective of {objective:g} s.",
            runbook="queue-age",
            breaches=3,
            periods=5,
        )
        self._watch(
            "DeadLetterArrival",
            arrivals(queues.dead_letters),
            0,
            sentence=f"A message of worker {worker.name} was dead-lettered just now.",
            runbook="dead-letter-arrival",
            periods=3,  # SQS's metrics come late: a minute is looked at again twice, when its data may have come
        )
        self._watch(
            "DeadLettersWaiting",
            queue_metric(queues.dead_letters, VISIBLE),
            1,
            operator=AT_LEAST,
            sentence=f"Dead letters of worker {worker.name} wait for a decision.",
            runbook="dead-letters-waiting",
        )
        self._watch(
            "DeadLetterAge",
            queue_metric(queues.dead_letters, OLDEST),
            OLDEST_DEAD_LETTER.total_seconds(),
            sentence=(
                f"A dead letter of worker {worker.name} lies there for {OLDEST_DEAD_LETTER.days} days; it may be lost"
                f" in {TO_DECIDE.days}."
            ),
            runbook="dead-letter-age",
        )


class _SenderAlarms(_Alarms):
    """What relay and sweeper have in common: what they cannot send is parked, and nobody tries it again by himself."""

    def _watch_parked(self, service: str) -> None:
        self._watch(
            "Parked",
            own_metric("parked", service=service, job_type=NO_JOB_TYPE),
            0,
            sentence="A committed message can never be sent as it is; it is parked in the outbox with its reason.",
            runbook="outbox-parked",
        )


@dataclass(frozen=True, slots=True)
class _Stream:
    """A reader of a stream, in the words of its alarms; `parks` is its service's name where it parks messages."""

    construct_id: str
    name: str
    runbook: str
    waits: str
    given_up: str
    parks: str | None = None


class _StreamAlarms(_SenderAlarms):
    """What the functions that read a table's stream have in common."""

    what: _Stream

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        function: lambda_.IFunction,
        failures: sqs.IQueue,
        topic: sns.ITopic,
    ) -> None:
        super().__init__(scope, construct_id, topic=topic)
        what = self.what
        self._watch(
            f"{what.construct_id}Errors",
            function_metric(function, "Errors", "Sum"),
            0,
            sentence=f"The {what.name} failed; {what.waits}.",
            runbook=f"{what.runbook}-errors",
            breaches=3,
            periods=5,
        )
        self._watch(
            f"{what.construct_id}Lag",
            function_metric(function, "IteratorAge", "Maximum"),
            OLDEST_STREAM_RECORD.total_seconds() * 1000,
            sentence=f"The {what.name} lags more than {OLDEST_STREAM_RECORD.seconds} s behind the table.",
            runbook=f"{what.runbook}-lag",
            breaches=3,
            periods=3,
        )
        self._watch(
            f"{what.construct_id}GaveUp",
            queue_metric(failures, VISIBLE),
            1,
            operator=AT_LEAST,
            sentence=f"The {what.name} gave up on some items; {what.given_up}.",
            runbook=f"{what.runbook}-gave-up",
        )
        if what.parks is not None:
            self._watch_parked(what.parks)


class RelayAlarms(_StreamAlarms):
    """Alarms of the outbox relay."""

    what = _Stream(
        "Relay",
        "outbox relay",
        "relay",
        "committed messages wait to be sent",
        "their messages are left to the sweeper",
        parks="outbox-relay",
    )


class PartCounterAlarms(_StreamAlarms):
    """Alarms of the part counter."""

    what = _Stream(
        "PartCounter",
        "part counter",
        "part-counter",
        "jobs whose parts have ended wait to go on",
        "their jobs are left to the sweeper",
    )


class SweeperAlarms(_SenderAlarms):
    """Alarms of the outbox sweeper, which tells its lag every minute, also when nothing waits."""

    def __init__(self, scope: Construct, construct_id: str, *, topic: sns.ITopic) -> None:
        super().__init__(scope, construct_id, topic=topic)
        self._watch(
            "OutboxLag",
            own_metric("outbox_lag", service="outbox-sweeper", job_type=NO_JOB_TYPE),
            LONGEST_IN_OUTBOX.total_seconds() * 1000,
            sentence=(
                f"A committed message waits for more than {LONGEST_IN_OUTBOX.seconds} s to be sent, or the sweeper is silent."
            ),
            runbook="outbox-lag",
            breaches=2,
            periods=3,
            missing=cloudwatch.TreatMissingData.BREACHING,
        )
        self._watch(
            "JobsLost",
            own_metric("job_lost", service="outbox-sweeper", job_type=NO_JOB_TYPE),
            0,
            sentence="A job lost its message again and again, and was dead-lettered without one.",
            runbook="jobs-lost",
        )
        self._watch_parked("outbox-sweeper")


class FrontDoorAlarms(_Alarms):
    """The alarm of the front door."""

    def __init__(self, scope: Construct, construct_id: str, *, api: apigateway.IHttpApi, topic: sns.ITopic) -> None:
        super().__init__(scope, construct_id, topic=topic)
        self._watch(
            "Errors",
            cloudwatch.Metric(
                namespace="AWS/ApiGateway",
                metric_name="5xx",
                dimensions_map={"ApiId": api.api_id},
                statistic="Sum",
                period=MINUTE,
            ),
            0,
            sentence="The front door answered clients with errors of ours.",
            runbook="front-door-errors",
            breaches=3,
            periods=5,
        )
