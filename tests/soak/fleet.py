"""The processes of a round: Lambda starts another one where one has died."""

from __future__ import annotations

import signal
import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from shared.failpoints import Failpoint
from tests.faults.lives import Life

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess
    from random import Random

    from shared.settings import Settings

WORKERS = 3
NAMES = (*(f"worker-{number}" for number in range(WORKERS)), "relay")
RELAYED = frozenset(point for point in Failpoint if point.startswith("relay"))
CONSUMED = frozenset(Failpoint) - RELAYED


@dataclass
class Fleet:
    """Some workers and a relay. While `fated`, half of them are to die at a failpoint that chance chooses."""

    random: Random
    settings: Settings
    endpoint: str
    fated: bool = True
    fired: Counter[str] = field(default_factory=Counter)
    processes: dict[str, BaseProcess] = field(default_factory=dict)
    errors: list[Exception] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        """Begin to keep them alive."""
        self._thread = threading.Thread(target=self._tend)
        self._thread.start()

    def heal(self) -> None:
        """From now on nobody is fated, and whoever is there is replaced."""
        self.fated = False
        for process in list(self.processes.values()):
            process.kill()

    def end(self) -> None:
        """End them all."""
        self._over.set()
        self._thread.join()
        for process in self.processes.values():
            process.kill()
            process.join()

    def pick(self) -> BaseProcess | None:
        """One that is alive."""
        alive = [process for process in list(self.processes.values()) if process.is_alive()]
        return self.random.choice(alive) if alive else None

    def _tend(self) -> None:
        try:
            while not self._over.wait(0.1):
                for name in NAMES:
                    self._see_to(name)
        except Exception as error:  # noqa: BLE001 - told at the end of the round
            self.errors.append(error)

    def _see_to(self, name: str) -> None:
        process = self.processes.get(name)
        if process is not None and process.is_alive():
            return
        if process is not None and process.exitcode != -signal.SIGKILL:
            self.fired[f"ended with {process.exitcode}"] += 1
        is_relay = name == "relay"
        points = sorted(RELAYED if is_relay else CONSUMED)
        fate = self.random.choice(points) if self.fated and self.random.random() < 0.5 else None
        self.fired["fated"] += fate is not None
        life = Life(
            "relay_on" if is_relay else "consume",
            self.settings,
            {"AWS_ENDPOINT_URL": self.endpoint},
            fate,
            after=self.random.randint(0, 10),
            seconds=3600,
        )
        self.processes[name] = life.start()
