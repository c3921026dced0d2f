"""The lookout: the function that looks into the cache for others, and brakes queues by what it sees there every minute."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from aws_cdk import CfnOutput, Stack
from constructs import Construct

from infra.alarms.senders import lookout_alarms
from infra.constructs.alarms import Alarms
from infra.constructs.function import Function, Place, Shape
from infra.constructs.schedule import every_minute
from infra.grants import BRAKES, allow_table

if TYPE_CHECKING:
    from infra.constructs.foundation import Foundation
    from infra.constructs.function import Package
    from infra.constructs.mapping import WorkerMapping

SHAPE = Shape(
    module="functions.lookout",
    description="lookout: brakes queues whose dependency is down, and tells operators of breakers and locks",
    timeout=timedelta(seconds=30),
    memory=256,
)


class Lookout(Construct):
    """The lookout's function and its schedule. It watches workers as they are added."""

    def __init__(self, scope: Construct, construct_id: str, *, foundation: Foundation, package: Package) -> None:
        super().__init__(scope, construct_id)
        self._settings = foundation.cache_settings
        self.function = function = Function(
            self,
            "Lookout",
            shape=SHAPE,
            stage=foundation.stage,
            package=package,
            environ=self._settings.to_environ(),
            key=foundation.key,
            # Lambda's own API is reached by the way out; where there is none, no worker has a dependency to be braked for.
            place=Place(foundation.network, foundation.network.has_egress),
        )
        allow_table(function.role, foundation.tables.jobs, BRAKES)
        foundation.cache.admit(function.role)
        every_minute(self, function, f"Brakes and frees the queues of {Stack.of(self).stack_name}")
        declared = lookout_alarms(function.name)
        self.alarms = Alarms(self, "Alarms", declared, topic=foundation.topic)
        CfnOutput(Stack.of(self), "LookoutFunction", value=function.name)

    def watch(self, mapped: WorkerMapping) -> None:
        """Tell of a worker's dependencies, and brake it where it does nothing without one of them."""
        worker, needs = mapped.worker, mapped.worker.needs
        gates = {each.name: each.gate.written for each in worker.dependencies if each.gate is not None}
        told = replace(
            self._settings,
            gates={name: text for name, text in gates.items() if text is not None},
            needs={worker.name: " ".join(each.name for each in needs)} if needs else {},
            mappings=mapped.settings if needs else {},
        )
        self.function.tell(told.maps_to_environ())
        if needs:
            mapped.let_brake(self.function)
