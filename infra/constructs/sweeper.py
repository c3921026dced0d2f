"""The outbox sweeper: every minute it sends what nobody else sends, and says how long the oldest message has waited."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from aws_cdk import Stack
from constructs import Construct

from infra.alarms.senders import sweeper_alarms
from infra.constructs.alarms import Alarms
from infra.constructs.function import Shape, of_foundation
from infra.constructs.schedule import every_minute
from infra.grants import BRAKES, OUTBOX_SWEEP, QUERY_INDEX, RESCUE, SEND, allow, allow_queue, allow_table
from shared.backends.dynamodb.outbox import LANES, WAITING
from shared.backends.dynamodb.unended import INDEX
from shared.rounds.recurrence import Recurrence

if TYPE_CHECKING:
    from aws_cdk import aws_sqs as sqs

    from infra.constructs.foundation import Foundation
    from infra.constructs.function import Package
    from infra.constructs.mapping import WorkerMapping

SHAPE = Shape(
    module="functions.outbox_sweeper",
    description="outbox sweeper: sends what nobody else sends",
    timeout=timedelta(seconds=55),  # less than the schedule's minute: two sweeps would only send things twice
    memory=256,
)


class OutboxSweeper(Construct):
    """The sweeper's function and its schedule. It serves queues as they are added."""

    def __init__(self, scope: Construct, construct_id: str, *, foundation: Foundation, package: Package) -> None:
        super().__init__(scope, construct_id)
        self._foundation = foundation
        outbox = foundation.tables.outbox
        self.function = function = of_foundation(self, "Sweeper", SHAPE, foundation, package)
        allow_table(function.role, outbox, OUTBOX_SWEEP)
        allow(function.role, QUERY_INDEX, *(f"{outbox.table_arn}/index/{index}" for index in (WAITING, LANES)))
        jobs = foundation.tables.jobs
        allow_table(function.role, jobs, RESCUE)
        allow_table(function.role, jobs, BRAKES)
        allow(function.role, QUERY_INDEX, f"{jobs.table_arn}/index/{INDEX}")
        every_minute(self, function, f"Sweeps the outbox of {Stack.of(self).stack_name}")
        declared = sweeper_alarms(function.name, foundation.alarm_settings)
        self.alarms = Alarms(self, "Alarms", declared, topic=foundation.topic)

    def serve(self, mapped: WorkerMapping, queue: sqs.IQueue) -> None:
        """Let the sweeper send to the queue of a worker, and free its mapping when a brake's time is up."""
        worker = mapped.worker
        told = replace(
            self._foundation.settings,
            queues={worker.name: queue.queue_url},
            routes={} if worker.fifo else {job.name: worker.name for job in worker.jobs},
            mappings=mapped.settings,
            recurring={
                job.name: Recurrence(job.name, job.version, worker.name, job.cron).written
                for job in worker.jobs
                if job.cron is not None
            },
        )
        allow_queue(self.function.role, queue, SEND)
        self.function.tell(told.to_environ())
        mapped.let_brake(self.function)
