"""The part counter: reads the stream of the job records and wakes the jobs whose parts have all ended."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from constructs import Construct

from infra.alarms.senders import PART_COUNTER, reader_alarms
from infra.constructs.alarms import Alarms
from infra.constructs.function import Shape, of_foundation
from infra.constructs.mapping import ENDED_PARTS, consume_stream
from infra.grants import COUNT_PARTS, OUTBOX_WRITE, allow_table

if TYPE_CHECKING:
    from infra.constructs.foundation import Foundation
    from infra.constructs.function import Package
    from shared.worker import Worker

SHAPE = Shape(
    module="functions.part_counter",
    description="part counter: counts the parts of split jobs",
    timeout=timedelta(seconds=30),
    memory=256,
)


class PartCounter(Construct):
    """The counter's function, its mapping and the queue of what it gave up. It knows workers as they are added."""

    def __init__(self, scope: Construct, construct_id: str, *, foundation: Foundation, package: Package) -> None:
        super().__init__(scope, construct_id)
        self._foundation = foundation
        tables = foundation.tables
        self.function = function = of_foundation(self, "Counter", SHAPE, foundation, package)
        allow_table(function.role, tables.jobs, COUNT_PARTS)
        allow_table(function.role, tables.outbox, OUTBOX_WRITE)
        self.failures = consume_stream(self, tables.jobs, function, foundation, ENDED_PARTS)
        declared = reader_alarms(PART_COUNTER, function.name, self.failures.queue_name, foundation.alarm_settings)
        self.alarms = Alarms(self, "Alarms", declared, topic=foundation.topic)

    def serve(self, worker: Worker) -> None:
        """Let the counter wake the jobs of a worker that are split."""
        routes = {job.name: worker.name for job in worker.jobs if job.parts}
        self.function.tell(replace(self._foundation.settings, routes=routes).to_environ())
