"""The outbox sweeper: every minute it sends what the relay missed, and says how long the oldest message has waited."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from aws_cdk import Duration, Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from constructs import Construct

from infra.constructs.alarms import SweeperAlarms
from infra.constructs.function import Function, Shape
from infra.constructs.sending import let_send, sender_settings
from infra.grants import OUTBOX_SWEEP, QUERY_INDEX, allow, allow_table
from shared.backends.outbox import WAITING

if TYPE_CHECKING:
    from aws_cdk import aws_sqs as sqs

    from infra.constructs.foundation import Foundation
    from infra.constructs.function import Package

SHAPE = Shape(
    module="functions.outbox_sweeper",
    description="outbox sweeper: sends what the relay missed",
    timeout=timedelta(seconds=55),  # less than the schedule's minute: two sweeps would only send things twice
    memory=256,
)
EVERY = Duration.minutes(1)


class OutboxSweeper(Construct):
    """The sweeper's function and its schedule. It serves queues as they are added."""

    def __init__(self, scope: Construct, construct_id: str, *, foundation: Foundation, package: Package) -> None:
        super().__init__(scope, construct_id)
        self._foundation = foundation
        outbox = foundation.tables.outbox
        self._function = function = Function(
            self,
            "Sweeper",
            shape=SHAPE,
            stage=foundation.stage,
            package=package,
            environ=sender_settings(foundation, {}).to_environ(),
            key=foundation.key,
        )
        self.function = function.resource
        allow_table(function.role, outbox, OUTBOX_SWEEP)
        allow(function.role, QUERY_INDEX, f"{outbox.table_arn}/index/{WAITING}")
        events.Rule(
            self,
            "EveryMinute",
            description=f"Sweeps the outbox of {Stack.of(self).stack_name}",
            schedule=events.Schedule.rate(EVERY),
            # A sweep that failed is not repeated: the next minute's does the same.
            targets=[targets.LambdaFunction(self.function, retry_attempts=0, max_event_age=EVERY)],
        )
        SweeperAlarms(self, "Alarms", topic=foundation.topic)

    def serve(self, worker: str, queue: sqs.IQueue) -> None:
        """Let the sweeper send to the queue of a worker."""
        let_send(self._function, self._foundation, worker, queue)
