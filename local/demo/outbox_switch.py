"""The two that send what the outbox holds, in the hands of the demo: the relay is switched off and on, the sweeper called.

The stand-in's scheduler calls the sweeper once a minute. At the local stage's pace a minute has six seconds, which no scheduler
knows, so the demo calls it as often besides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from local.processes.child import ProcessError
from local.stack.running import STACK

if TYPE_CHECKING:
    from local.stack.clients import Clients

RELAY = ("OutboxRelay", "AWS::Lambda::EventSourceMapping")  # the beginning of its logical name, and its type
SWEEPER = ("OutboxSweeper", "AWS::Lambda::Function")


@dataclass(frozen=True, slots=True)
class OutboxSwitch:
    """The relay's mapping and the sweeper's function of the deployed stack."""

    clients: Clients
    mapping: str
    sweeper: str

    @classmethod
    def of(cls, clients: Clients) -> OutboxSwitch:
        """Find them.

        Raises:
            ProcessError: the stack has none.
        """
        resources = clients.resources(STACK)

        def named(beginning: str, kind: str) -> str:
            for resource in resources:
                if resource["LogicalResourceId"].startswith(beginning) and resource["ResourceType"] == kind:
                    return resource["PhysicalResourceId"]
            message = f"The stack {STACK} has no {kind} called {beginning}...: the demo cannot switch it."
            raise ProcessError(message)

        return cls(clients, named(*RELAY), named(*SWEEPER))

    def switch_relay(self, *, on: bool) -> None:
        """Let the stream be read, or not."""
        self.clients.functions.update_event_source_mapping(UUID=self.mapping, Enabled=on)

    def sweep(self) -> None:
        """Have the sweeper make a round, and do not wait for it."""
        self.clients.functions.invoke(FunctionName=self.sweeper, InvocationType="Event")
