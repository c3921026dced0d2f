"""Gates of dependencies in Valkey or Redis: calls of the scripts, and what their answers mean.

Scripts of our own and not a library's: the bounds of one call are kept in one exchange, over the process's one connection.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from shared.backends.redis.gate_scripts import ENTER, LEAVE, LOOK
from shared.backends.redis.keys import calls_key, gate_key
from shared.backends.redis.lines import Command
from shared.gate import LEAST_RAMP, GateState, Health, Turned, TurnedAway

if TYPE_CHECKING:
    from shared.backends.redis.connection import Connection
    from shared.gate import Gate

_MICRO = timedelta(microseconds=1)
NONE = timedelta(0)


@dataclass(frozen=True, slots=True)
class RedisGates:
    """Gates in Redis."""

    connection: Connection

    def enter(self, gate: Gate, token: str, *, is_retry: bool, patience: timedelta) -> TurnedAway | timedelta:
        """Let a call in, or turn it away."""
        breaker, rate, budget = gate.breaker, gate.rate, gate.retries
        why, wait = self._ask(
            ENTER,
            gate,
            token,
            _micros(gate.held),
            "1" if is_retry else "0",
            _micros(NONE if breaker is None else breaker.longest_pause),
            _micros(NONE if breaker is None else breaker.ramp),
            str(LEAST_RAMP),
            _micros(NONE if rate is None else rate.interval),
            "1" if rate is None else str(rate.burst),
            str(gate.concurrency or 0),
            "0" if budget is None else str(budget.share),
            "0" if budget is None else repr(budget.per_minute / 60_000_000),
            "0" if budget is None else str(budget.burst),
            _micros(patience),
        )
        return _time(wait) if why == "in" else TurnedAway(Turned(why), _time(wait))

    def leave(self, gate: Gate, token: str, *, served: bool | None) -> Health:
        """Note how a call went."""
        breaker = gate.breaker
        went = {True: "served", False: "failed", None: "none"}[served]
        failures = "0" if breaker is None else str(breaker.failures)
        pause, longest = (NONE, NONE) if breaker is None else (breaker.pause, breaker.longest_pause)
        times = _micros(pause), _micros(longest), _micros(gate.held)
        open_for, ago, mine = self._ask(LEAVE, gate, token, went, failures, *times)
        return Health(_time(open_for), None if int(ago) < 0 else _time(ago), opened=bool(mine))

    def look(self, gate: Gate) -> GateState:
        """How a gate stands."""
        breaker = gate.breaker
        longest, ramp = (NONE, NONE) if breaker is None else (breaker.longest_pause, breaker.ramp)
        open_for, down, calls, failures, ramping = self._ask(LOOK, gate, _micros(longest), _micros(ramp))
        down_for = None if int(down) < 0 else _time(down)
        return GateState(_time(open_for), down_for, int(calls), int(failures), bool(ramping))

    def _ask(self, script: str, gate: Gate, *arguments: str) -> list[Any]:
        reply: Any = self.connection.send(
            Command.script(script, gate_key(gate.name), *arguments, also=(calls_key(gate.name),))
        )
        return list(reply)


def _micros(time: timedelta) -> str:
    return str(round(time / _MICRO))


def _time(micros: object) -> timedelta:
    return timedelta(microseconds=int(str(micros)))
