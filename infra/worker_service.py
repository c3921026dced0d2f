"""One worker as it is deployed: two queues, the consumer function between them, its permissions and alarms."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from aws_cdk import CfnOutput, CfnParameter, Stack
from constructs import Construct

from infra.alarms.canary import canary_alarm
from infra.alarms.metric import own
from infra.alarms.queues import Deployed
from infra.alarms.worker import worker_alarms
from infra.constructs.alarms import Alarms
from infra.constructs.function import Function, Shape
from infra.constructs.mapping import consume_queue
from infra.constructs.queue_pair import QueuePair
from infra.dashboard.page import ShownWorker
from infra.grants import (
    CONSUME,
    JOB_RECORDS,
    OUTBOX_WRITE,
    SEND,
    SPLIT,
    TABLE,
    allow_deposits,
    allow_files,
    allow_queue,
    allow_table,
)
from infra.names import module_of
from infra.stage.choices import CANARY
from infra.stage.sizes import Size
from shared.naming import camel
from shared.wire.deposits import DEPOSITS

if TYPE_CHECKING:
    from aws_cdk import aws_iam as iam

    from infra.constructs.foundation import Foundation
    from infra.constructs.function import Package
    from shared.settings import Settings
    from shared.worker import Worker


class WorkerService(Construct):
    """Everything of one worker.

    Args:
        scope: where it lives.
        construct_id: its name there.
        worker: the worker as it is declared; the stage's pace is put on it here.
        foundation: the tables, network, cache and topic it stands on, in this or another stack.
        package: gives the asset directory of an entry module.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, worker: Worker, foundation: Foundation, package: Package
    ) -> None:
        super().__init__(scope, construct_id)
        stage = foundation.stage
        self.worker = worker = stage.at(worker)
        self._foundation = foundation
        self.queues = QueuePair(self, "Queues", worker=worker, key=foundation.key, retain=stage.retain)
        function = Function(
            self,
            "Consumer",
            shape=Shape(
                module=module_of(worker),
                description=f"consumer of worker {worker.name}",
                timeout=worker.function_timeout,
                memory=worker.memory,
                reserved_concurrency=worker.reserved_concurrency,
                provisioned_concurrency=stage.sizes.get(worker.name, Size()).provisioned_concurrency,
            ),
            stage=stage,
            package=package,
            environ=self._settings().to_environ(),
            key=foundation.key,
            place=foundation.place_for(worker),
        )
        self.function = function
        self._grant(function.role)
        self.mapped = consume_queue(self, worker, self.queues.source, function)
        deployed = Deployed(
            self.queues.source.queue_name,
            self.queues.dead_letters.queue_name,
            function.name,
        )
        declared = worker_alarms(worker, deployed, foundation.alarm_settings)
        if worker.name == CANARY and stage.canary:
            declared.append(canary_alarm(own(CANARY, "latency"), foundation.alarm_settings))
        self.alarms = Alarms(self, "Alarms", declared, topic=foundation.topic)
        stack, name = Stack.of(self), camel(worker.name)
        CfnOutput(stack, f"Queue{name}", value=self.queues.source.queue_url)
        CfnOutput(stack, f"DeadLetterQueue{name}", value=self.queues.dead_letters.queue_url)
        CfnOutput(stack, f"Consumer{name}", value=function.name)
        CfnOutput(stack, f"Mapping{name}", value=self.mapped.settings[worker.name])

    @property
    def shown(self) -> ShownWorker:
        """As the dashboard shows it."""
        return ShownWorker(
            self.worker.name,
            self.queues.source.queue_name,
            self.queues.dead_letters.queue_name,
            self.function.name,
            self.function.memory,
            bool(self.worker.dependencies),
        )

    def _grant(self, role: iam.IRole) -> None:
        allow_queue(role, self.queues.source, CONSUME)
        allow_queue(role, self.queues.dead_letters, SEND)
        allow_table(role, self._foundation.tables.jobs, JOB_RECORDS)
        if any(job.parts for job in self.worker.jobs):
            allow_table(role, self._foundation.tables.jobs, SPLIT)
        allow_table(role, self._foundation.tables.outbox, OUTBOX_WRITE)
        self._foundation.cache.admit(role)
        for access in self.worker.accesses:
            allow_table(role, self._foundation.table(access.table), TABLE[access.right])
        allow_deposits(role, self._foundation.deposits)
        for reach in self.worker.reaches:
            allow_files(role, self._foundation.buckets.named(reach.folder.bucket), reach)

    def _settings(self) -> Settings:
        worker, foundation = self.worker, self._foundation
        return replace(
            foundation.cache_settings,
            tables={a.table.name: foundation.table(a.table).table_name for a in worker.accesses},
            buckets={
                DEPOSITS.bucket: foundation.deposits.bucket_name,
                **{r.folder.bucket: foundation.buckets.named(r.folder.bucket).bucket_name for r in worker.reaches},
            },
            queues={worker.name: self.queues.source.queue_url},
            dead_letter_queues={worker.name: self.queues.dead_letters.queue_url},
            endpoints={d.name: self._endpoint(d.name) for d in worker.dependencies},
        )

    def _endpoint(self, dependency: str) -> str:
        """The base URL of a dependency: a parameter of the stack, one for all workers."""
        stack, name = Stack.of(self), f"Endpoint{camel(dependency)}"
        known = stack.node.try_find_child(name)
        if isinstance(known, CfnParameter):
            return known.value_as_string
        stage = self._foundation.stage
        parameter = CfnParameter(
            stack,
            name,
            description=f"Base URL of {dependency}",
            default=stage.endpoints.get(dependency),
            allowed_pattern="https?://.+" if stage.on_host else "https://.+",
        )
        return parameter.value_as_string
