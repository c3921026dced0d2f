"""Event source mappings of Lambda: paused, let go, let go a little. Nothing else of them is ever changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shared.backends.aws import translated

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Mapped:
    """A worker's mapping: its id, and how many batches at one time the worker declares."""

    uuid: str
    concurrency: int

    @property
    def written(self) -> str:
        """As a function's settings tell it, by its worker."""
        return f"{self.uuid} {self.concurrency}"

    @classmethod
    def read(cls, text: str) -> Mapped:
        """From a function's settings, where both stand in one text."""
        uuid, concurrency = text.split()
        return cls(uuid, int(concurrency))


@dataclass(frozen=True, slots=True)
class LambdaMappings:
    """The mappings of a stack, by worker.

    AWS refuses a change while another takes effect (ResourceInUse, ResourceConflict): that is Unavailable, and is tried again.
    """

    client: Any
    mapped: Mapping[str, Mapped]

    def pause(self, worker: str) -> None:
        """Receive nothing any more."""
        with translated("lambda"):
            self.client.update_event_source_mapping(UUID=self.mapped[worker].uuid, Enabled=False)

    def run(self, worker: str, concurrency: int | None = None) -> None:
        """Receive again."""
        mapped = self.mapped[worker]
        with translated("lambda"):
            self.client.update_event_source_mapping(
                UUID=mapped.uuid,
                Enabled=True,
                ScalingConfig={"MaximumConcurrency": concurrency or mapped.concurrency},
            )
