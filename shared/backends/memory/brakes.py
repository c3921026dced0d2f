"""The twins of brakes and of event source mappings in memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shared.rounds.brake import Brake


@dataclass(slots=True)
class MemoryBrakes:
    """Brakes by worker."""

    brakes: dict[str, Brake] = field(default_factory=dict)

    def read(self, worker: str) -> Brake | None:
        """The brake of a worker."""
        return self.brakes.get(worker)

    def write(self, worker: str, brake: Brake | None, seen: Brake | None) -> bool:
        """Put a brake in the place of what was seen there."""
        there = self.brakes.get(worker)
        if there != seen:
            return there == brake
        if brake is None:
            self.brakes.pop(worker, None)
        else:
            self.brakes[worker] = brake
        return True


@dataclass(slots=True)
class MemoryMappings:
    """How many batches each worker's mapping receives at one time: 0 while it is paused, None as declared."""

    running: dict[str, int | None] = field(default_factory=dict)

    def pause(self, worker: str) -> None:
        """Receive nothing any more."""
        self.running[worker] = 0

    def run(self, worker: str, concurrency: int | None = None) -> None:
        """Receive again."""
        self.running[worker] = concurrency
