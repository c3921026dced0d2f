"""What a stage says of the size of one function, in place of what its worker declares."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    from shared.worker import Worker

FRONT_DOOR = "front-door"
DECLARED = ("memory", "max_concurrency", "reserved_concurrency")


class Size(BaseModel):
    """The size of a worker's consumer or of the front door; what is left out stays as it is declared.

    Attributes:
        memory: of the function in MiB.
        max_concurrency: invocations at one time (the mapping's MaximumConcurrency); only workers have a mapping.
        reserved_concurrency: of the function.
        provisioned_concurrency: environments that are kept ready, at least for that many invocations at one time.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    memory: int | None = Field(default=None, ge=128, le=10_240)
    max_concurrency: int | None = Field(default=None, ge=2, le=1000)
    reserved_concurrency: int | None = Field(default=None, ge=1)
    provisioned_concurrency: int | None = Field(default=None, ge=1)

    def of(self, worker: Worker) -> Worker:
        """The worker in this size."""
        said = {name: value for name in DECLARED if (value := getattr(self, name)) is not None}
        return replace(worker, **said) if said else worker
