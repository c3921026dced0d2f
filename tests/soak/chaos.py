"""What goes wrong while a round runs, drawn at random and counted: each fault is its own witness."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from redis import Redis
from redis.exceptions import RedisError

from tests.faults.burst import ruled

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

    from local.stack.valkey import Valkey
    from tests.faults.burst import Burst
    from tests.soak.fleet import Fleet

LOST = {"response": {"abort_bytes": 0}}
THROTTLED = {"error": {"code": "ProvisionedThroughputExceededException"}}
RULES: tuple[dict[str, Any], ...] = (
    {"service": "dynamodb", "operation": "TransactWriteItems", "probability": 0.3, **LOST},
    {"service": "dynamodb", "operation": "TransactWriteItems", "probability": 0.3, "reset": True},
    {"service": "dynamodb", "operation": "UpdateItem", "probability": 0.2, **LOST},
    {"service": "dynamodb", "probability": 0.3, **THROTTLED},
    {"service": "sqs", "operation": "DeleteMessage", "probability": 0.5, **LOST},
    {"service": "sqs", "operation": "ChangeMessageVisibility", "probability": 0.5, "error": {"code": "OverLimit"}},
    {"service": "sqs", "operation": "SendMessage", "probability": 0.5, **LOST},
)


@dataclass
class Chaos:
    """Breaks processes, and beside that Valkey, connections and AWS's answers, until it is calmed."""

    random: Random
    fleet: Fleet
    valkey: Valkey
    burst: Burst
    fired: Counter[str] = field(default_factory=Counter)
    errors: list[Exception] = field(default_factory=list)
    _calm: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        """Begin."""
        processes = (self._kill, self._kill, self._freeze)
        world = (self._cut, self._flush, self._stop_valkey, self._misbehave, self._misbehave, self._misbehave)
        self._threads = [threading.Thread(target=self._go_on, args=(faults,)) for faults in (processes, world)]
        for thread in self._threads:
            thread.start()

    def calm(self) -> None:
        """Stop, and leave everything in good health."""
        self._calm.set()
        for thread in self._threads:
            thread.join()

    def _go_on(self, faults: Sequence[Callable[[], None]]) -> None:
        try:
            while not self._calm.wait(self.random.uniform(0.2, 1.5)):
                self.random.choice(faults)()
        except Exception as error:  # noqa: BLE001 - told at the end of the round
            self.errors.append(error)

    def _kill(self) -> None:
        process = self.fleet.pick()
        if process is not None:
            process.kill()
            self.fired["killed"] += 1

    def _freeze(self) -> None:
        """Now and then for longer than a claim lasts."""
        process = self.fleet.pick()
        if process is None or process.pid is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGSTOP)
            self.fired["frozen"] += 1
            self._calm.wait(self.random.choice((1.0, 1.0, 4.0, 14.0)))
            os.kill(process.pid, signal.SIGCONT)

    def _cut(self) -> None:
        with contextlib.suppress(RedisError), Redis(port=self.valkey.port, socket_timeout=2) as redis:
            self.fired["connections cut"] += redis.client_kill_filter(_type="normal", skipme=True)

    def _flush(self) -> None:
        with contextlib.suppress(RedisError), Redis(port=self.valkey.port, socket_timeout=2) as redis:
            redis.flushall()
            self.fired["Valkey flushed"] += 1

    def _stop_valkey(self) -> None:
        """It comes back empty."""
        self.valkey.stop()
        self.fired["Valkey stopped"] += 1
        self._calm.wait(self.random.uniform(0.5, 3.0))
        self.valkey.start()

    def _misbehave(self) -> None:
        rule = self.random.choice(RULES)
        with ruled(self.burst, rule):
            self._calm.wait(self.random.uniform(1.0, 3.0))
            self.fired[f"{rule['service']} misbehaved"] += len(self.burst.fired())
