"""The lookout: the one function that looks into the cache for others.

Every minute it brakes and frees queues by what it sees of the breakers; and it answers the operator, who has no way into the
network, about breakers and locks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from functions.invoked import invoked, once
from shared.backends.aws import client
from shared.backends.dynamodb.brakes import DynamoDBBrakes
from shared.backends.mappings import LambdaMappings, Mapped
from shared.backends.powertools import PowertoolsTelemetry
from shared.backends.redis.elasticache import connection
from shared.backends.redis.gates import RedisGates
from shared.backends.redis.held_leases import RedisLeases
from shared.clock import SystemClock
from shared.errors import CacheUnavailable, EventError
from shared.gate import Gate
from shared.rounds.brake_rounds import Controller

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shared.backends.redis.held_leases import HeldLease
    from shared.gate import Gates
    from shared.settings import Settings

LOOK = "look"
MOST_LOCKS = 1000


@dataclass(frozen=True, slots=True)
class Lookout:
    """Looks at gates and leases."""

    controller: Controller
    gates: Gates
    known: Sequence[Gate]
    leases: RedisLeases

    def answer(self, question: dict[str, Any]) -> dict[str, Any]:
        """Answer an operator. What the cache does not tell is told as `unavailable`, not as an error of the function.

        Raises:
            EventError: there is no such question.
        """
        try:
            match question:
                case {"look": "gates"}:
                    return {"gates": {gate.name: self._gate(gate) for gate in self.known}}
                case {"look": "locks", "start": str(start), "most": int(most)}:
                    held, complete = self.leases.find(start, min(most, MOST_LOCKS))
                    return {"locks": [_lease(lease) for lease in held], "complete": complete}
                case {"look": "lock", "key": str(key)}:
                    lease = self.leases.show(key)
                    return {"lock": None if lease is None else _lease(lease)}
                case _:
                    message = f"There is no such question: {sorted(question)}. Ask for gates, locks or a lock."
                    raise EventError(message)
        except CacheUnavailable as error:
            return {"unavailable": str(error)}

    def _gate(self, gate: Gate) -> dict[str, Any]:
        state = self.gates.look(gate)
        return {
            "open_for_s": state.open_for.total_seconds(),
            "down_for_s": None if state.down_for is None else state.down_for.total_seconds(),
            "calls": state.calls,
            "failures": state.failures,
            "ramping": state.ramping,
        }


def _lease(lease: HeldLease) -> dict[str, Any]:
    return {"key": lease.key, "holder": lease.holder, "left_s": lease.left.total_seconds()}


def connect(settings: Settings) -> Lookout:
    """The lookout of the stack that the settings name."""
    clock, telemetry = SystemClock(), PowertoolsTelemetry("lookout")
    redis = connection(settings, clock, most=2)
    gates = RedisGates(redis)
    known = {name: Gate.read(name, text) for name, text in settings.gates.items()}
    controller = Controller(
        {worker: [known[name] for name in names.split()] for worker, names in settings.needs.items()},
        gates,
        DynamoDBBrakes(client("dynamodb"), settings.jobs_table),
        LambdaMappings(client("lambda"), {name: Mapped.read(text) for name, text in settings.mappings.items()}),
        clock,
        telemetry,
        settings.pace,
    )
    return Lookout(controller, gates, tuple(known.values()), RedisLeases(redis))


lookout_here = once(connect)


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:  # noqa: ANN401 - the Lambda context
    """Answer a question, or make a round for the schedule."""
    lookout = lookout_here()
    if LOOK in event:
        return lookout.answer(event)
    with invoked(lookout.controller.telemetry, context):
        lookout.controller.make_round()
    return {}
