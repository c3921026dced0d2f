"""What workers stand on: key, tables, buckets, network, cache and the topic of alarms. It knows no worker.

It may live in a stack of its own: workers point at it, it never points at them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from aws_cdk import CfnOutput, Stack
from constructs import Construct

from infra.alarms.stores import cache_alarms, jobs_table_alarms, table_alarms
from infra.constructs.access_logs import access_logs
from infra.constructs.alarms import Alarms
from infra.constructs.audit import audit_log
from infra.constructs.buckets import Buckets
from infra.constructs.cache import Cache
from infra.constructs.function import Place
from infra.constructs.key import customer_key
from infra.constructs.network import Network
from infra.constructs.tables import Tables
from infra.constructs.topic import alarm_topic
from shared.errors import DeclarationError
from shared.naming import camel
from shared.settings import Settings
from shared.wire.deposits import DEPOSITS

if TYPE_CHECKING:
    from aws_cdk import aws_dynamodb as dynamodb
    from aws_cdk import aws_s3 as s3

    from infra.plan import Plan
    from shared.table import Table
    from shared.worker import Worker


class Foundation(Construct):
    """The shared part of a stack; `plan` tells which tables there are and whether calls go out."""

    def __init__(self, scope: Construct, construct_id: str, *, plan: Plan) -> None:
        super().__init__(scope, construct_id)
        self.stage = stage = plan.stage
        self.key = customer_key(self, stage=stage) if stage.customer_key else None
        self.audit = audit_log(self, key=self.key, stage=stage)
        self.topic = alarm_topic(self, key=self.key, stage=stage)
        self.tables = Tables(self, "Tables", stage=stage, key=self.key)
        self.access_logs = access_logs(self, stage=stage)
        self.buckets = Buckets(self, "Buckets", stage=stage, key=self.key, access_logs=self.access_logs)
        egress = bool(plan.outgoing)
        self.network = Network(self, "Network", stage=stage, egress=egress, access_logs=self.access_logs)
        self.cache = Cache(self, "Cache", network=self.network, key=self.key, stage=stage)
        self.alarm_settings = stage.alarms
        declared = (
            *jobs_table_alarms(self.tables.jobs.table_name, self.alarm_settings),
            *table_alarms("Outbox", self.tables.outbox.table_name, self.alarm_settings),
            *cache_alarms(self.cache.name, self.alarm_settings),
        )
        self.alarms = [Alarms(self, "AlarmsOfStores", declared, topic=self.topic)]
        self._named: set[str] = set()
        self._relayed_by: str | None = None
        stack = Stack.of(self)
        CfnOutput(stack, "JobsTable", value=self.tables.jobs.table_name)
        CfnOutput(stack, "OutboxTable", value=self.tables.outbox.table_name)
        CfnOutput(stack, "AlarmTopic", value=self.topic.topic_arn)
        for table in plan.tables:
            self.table(table)
        for bucket in (DEPOSITS.bucket, *plan.buckets):
            self.buckets.named(bucket)

    @property
    def settings(self) -> Settings:
        """What every function that stands on it is told."""
        return Settings(
            jobs_table=self.tables.jobs.table_name,
            outbox_table=self.tables.outbox.table_name,
            pace=self.stage.pace,
        )

    @property
    def cache_settings(self) -> Settings:
        """The same, for functions that use the cache."""
        return replace(
            self.settings,
            cache_host=self.cache.host,
            cache_port=self.cache.port,
            cache_tls=self.stage.cache_tls,
            cache_cluster=self.stage.cache_cluster,
            cache_user=self.cache.user,
            cache_name=self.cache.name if self.cache.user else "",
        )

    @property
    def deposits(self) -> s3.Bucket:
        """Where texts go that are too large to travel."""
        return self.buckets.named(DEPOSITS.bucket)

    def take_outbox(self, stack: str) -> None:
        """Note who relays the outbox.

        Raises:
            DeclarationError: another stack does already; each of two relays would see all items and know half the
                queues.
        """
        if self._relayed_by is not None:
            message = (
                f"stack {stack!r} stands on a foundation whose outbox is relayed by stack {self._relayed_by!r}, and an"
                f" outbox has one relay: add its workers to {self._relayed_by!r}, or give it a foundation of its own."
            )
            raise DeclarationError(message)
        self._relayed_by = stack

    def table(self, declared: Table) -> dynamodb.Table:
        """The table of a declaration, made when first asked for."""
        table = self.tables.business(declared)
        if declared.name not in self._named:
            self._named.add(declared.name)
            alarms = table_alarms(camel(declared.name), table.table_name, self.alarm_settings)
            self.alarms.append(Alarms(self, f"AlarmsOf{camel(declared.name)}", alarms, topic=self.topic))
            CfnOutput(Stack.of(self), f"Table{camel(declared.name)}", value=table.table_name)
        return table

    def place_for(self, worker: Worker) -> Place:
        """Where a worker's function runs.

        Raises:
            DeclarationError: it calls an outside system and the network has no way out.
        """
        egress = bool(worker.dependencies)
        if egress and not self.network.has_egress:
            message = (
                f"worker {worker.name!r} calls {', '.join(d.name for d in worker.dependencies)}, and the network was"
                " laid out for workers that call nothing outside: give this worker in `workers` of the stack, or in the"
                " plan of its foundation."
            )
            raise DeclarationError(message)
        return Place(self.network, egress)
