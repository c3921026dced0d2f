"""The outbox relay: reads the outbox table's stream and sends what was committed to the workers' queues."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from aws_cdk import Stack
from constructs import Construct

from infra.alarms.senders import RELAY, reader_alarms
from infra.constructs.alarms import Alarms
from infra.constructs.function import Shape, of_foundation
from infra.constructs.mapping import ONLY_NEW_ITEMS, consume_stream
from infra.grants import GIVE_UP, OUTBOX_SEND, QUERY_INDEX, SEND, allow, allow_queue, allow_table
from shared.backends.dynamodb.outbox import LANES

if TYPE_CHECKING:
    from aws_cdk import aws_sqs as sqs

    from infra.constructs.foundation import Foundation
    from infra.constructs.function import Package
    from shared.worker import Worker

SHAPE = Shape(
    module="functions.outbox_relay",
    description="outbox relay: sends committed messages",
    timeout=timedelta(seconds=30),
    memory=256,
)


class OutboxRelay(Construct):
    """The relay's function, its mapping and the queue of what it gave up. It serves queues as they are added.

    Raises:
        DeclarationError: the foundation's outbox has a relay already.
    """

    def __init__(self, scope: Construct, construct_id: str, *, foundation: Foundation, package: Package) -> None:
        super().__init__(scope, construct_id)
        foundation.take_outbox(Stack.of(self).stack_name)
        self._foundation = foundation
        tables = foundation.tables
        self.function = function = of_foundation(self, "Relay", SHAPE, foundation, package)
        allow_table(function.role, tables.outbox, OUTBOX_SEND)
        allow(function.role, QUERY_INDEX, f"{tables.outbox.table_arn}/index/{LANES}")
        allow_table(function.role, tables.jobs, GIVE_UP)
        self.failures = consume_stream(self, tables.outbox, function, foundation, ONLY_NEW_ITEMS)
        declared = reader_alarms(RELAY, function.name, self.failures.queue_name, foundation.alarm_settings)
        self.alarms = Alarms(self, "Alarms", declared, topic=foundation.topic)

    def serve(self, worker: Worker, queue: sqs.IQueue) -> None:
        """Let the relay send to the queue of a worker."""
        told = replace(self._foundation.settings, queues={worker.name: queue.queue_url})
        allow_queue(self.function.role, queue, SEND)
        self.function.tell(told.to_environ())
