"""Which job types are closed, in memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shared.intake.shedding import Closed


@dataclass(frozen=True, slots=True)
class MemoryIntakeStore:
    """What was last said of each job type."""

    said: dict[str, Closed] = field(default_factory=dict)

    def closed(self, job_type: str) -> Closed | None:
        """What was last said of a job type."""
        return self.said.get(job_type)

    def close(self, job_type: str, closed: Closed) -> None:
        """Close intake."""
        self.said[job_type] = closed

    def open(self, job_type: str) -> None:
        """Open intake again."""
        self.said.pop(job_type, None)
