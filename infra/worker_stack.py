"""The stack: its foundation (or a given one), the outbox relay and sweeper, the part counter, the lookout, and a service for each worker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Stack

from infra.constructs.dashboard import Dashboard
from infra.constructs.foundation import Foundation
from infra.constructs.front_door import FrontDoor
from infra.constructs.lookout import Lookout
from infra.constructs.part_counter import PartCounter
from infra.constructs.relay import OutboxRelay
from infra.constructs.rollout import Rollout
from infra.constructs.sweeper import OutboxSweeper
from infra.dashboard.cost import Billed
from infra.dashboard.page import Shown
from infra.plan import Plan
from infra.worker_service import WorkerService
from shared.naming import camel

if TYPE_CHECKING:
    from collections.abc import Iterable

    from constructs import Construct

    from infra.constructs.function import Package
    from infra.stage.settings import Stage
    from shared.worker import Worker


class WorkerStack(Stack):
    """Workers and what they stand on.

    Args:
        scope: the app.
        construct_id: its name, also the start of the queues' names.
        stage: the settings.
        workers: as they are declared.
        package: gives the asset directory of an entry module.
        foundation: of another stack; by default the stack has its own.
    """

    def __init__(  # noqa: PLR0913 - by keyword only
        self,
        scope: Construct,
        construct_id: str,
        *,
        stage: Stage,
        workers: Iterable[Worker],
        package: Package,
        foundation: Foundation | None = None,
    ) -> None:
        self._plan = Plan(stage, tuple(workers))
        super().__init__(scope, construct_id, description="Tahan: serverless workers")
        self._package = package
        self.foundation = foundation or Foundation(self, "Foundation", plan=self._plan)
        self.relay = OutboxRelay(self, "OutboxRelay", foundation=self.foundation, package=package)
        self.counter = PartCounter(self, "PartCounter", foundation=self.foundation, package=package)
        self.sweeper = OutboxSweeper(self, "OutboxSweeper", foundation=self.foundation, package=package)
        self.lookout = Lookout(self, "Lookout", foundation=self.foundation, package=package)
        self.rollout = Rollout(self, "Rollout", stage=stage, topic=self.foundation.topic)
        self.front_door: FrontDoor | None = None
        if stage.identity is not None:
            self.front_door = FrontDoor(
                self, "FrontDoor", identity=stage.identity, foundation=self.foundation, package=package
            )
            self.rollout.of("the front door", self.front_door.function, self.front_door.alarms)
        self.services: dict[str, WorkerService] = {}
        for worker in self._plan.workers:
            self._serve(worker)
        self.dashboard = Dashboard(self, "Dashboard", self._shown())

    def add_worker(self, worker: Worker) -> WorkerService:
        """Deploy one more worker.

        Raises:
            DeclarationError: it does not fit to the others or to the stage.
        """
        self._plan = self._plan.with_worker(worker)
        service = self._serve(worker)
        self.dashboard.show(self._shown())
        return service

    def _serve(self, worker: Worker) -> WorkerService:
        service = WorkerService(
            self, f"Worker{camel(worker.name)}", worker=worker, foundation=self.foundation, package=self._package
        )
        self.services[worker.name] = service
        self.rollout.of(f"worker {worker.name}", service.function, service.alarms)
        self.relay.serve(worker, service.queues.source)
        self.counter.serve(worker)
        self.sweeper.serve(service.mapped, service.queues.source)
        self.lookout.watch(service.mapped)
        return service

    def _shown(self) -> Shown:
        """Everything as the dashboard shows it."""
        services, foundation, door = self.services.values(), self.foundation, self.front_door
        parts: dict[str, OutboxRelay | PartCounter | OutboxSweeper | Lookout | FrontDoor] = {
            "outbox relay": self.relay,
            "part counter": self.counter,
            "outbox sweeper": self.sweeper,
            "lookout": self.lookout,
        }
        if door is not None:
            parts["front door"] = door
        groups = [
            *foundation.alarms,
            *(part.alarms for part in parts.values()),
            *(service.alarms for service in services),
        ]
        return Shown(
            workers=[service.shown for service in services],
            functions={name: Billed(part.function.name, part.function.memory) for name, part in parts.items()},
            readers=("outbox relay", "part counter"),
            tables=(foundation.tables.jobs.table_name, foundation.tables.outbox.table_name),
            cache=foundation.cache.name,
            processor=foundation.stage.processor,
            api=None if door is None else door.api.api_id,
            alarms=[made for group in groups for made in group.made],
        )
