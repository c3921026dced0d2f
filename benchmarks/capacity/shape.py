"""What a job asks of the stack: counted calls (benchmarks/cost.json), declarations of its worker, and how long it takes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from benchmarks.capacity.quotas import INDEX_WRITE, TRANSACTION_FACTOR
from benchmarks.capacity.spread import EVEN, Spread
from benchmarks.cost import LASTS, SHORT
from benchmarks.cost_counts import kept
from functions.registry import WORKERS
from infra.stage.choices import CANARY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shared.dependency import Dependency
    from shared.worker import Worker

OUTBOX = {"invoices": 1}  # messages that the counted job has sent: one of the parts of its transaction each
GATE_EXCHANGES = 2  # with Redis for each call of a dependency with bounds: it is entered and left


class Origin(StrEnum):
    """How jobs come."""

    QUEUE = "queue"  # their messages are sent to the queue
    FRONT_DOOR = "front-door"  # they are accepted over HTTP, and the relay sends their messages


@dataclass(frozen=True, slots=True)
class Shape:
    """One successful job.

    Attributes:
        worker: whose job it is.
        origin: how it came.
        counted: what it asks for, as benchmarks/cost.json has it.
        time: from the start of its handler to its commit, in seconds.
        dependency: the outside system that it calls once, if any.
        call: how long that call takes, in seconds.
        jobs_writes: write units of the table of job records.
        items_writes: write units of the table of its business items.
        outbox_writes: write units of the outbox.
        messages: that the relay sends for it.
        unended_writes: writes of the index of unended jobs, whose keys are few.
        owner_writes: writes of the indexes of an owner's jobs.
        exchanges: with Redis.
        gate_exchanges: those of them that go to the hash slot of the dependency's gate.
    """

    worker: Worker
    origin: Origin
    counted: Mapping[str, Any]
    time: Spread
    dependency: Dependency | None
    call: float
    jobs_writes: float
    items_writes: float
    outbox_writes: float
    messages: float
    unended_writes: float
    owner_writes: float
    exchanges: float
    gate_exchanges: float

    @property
    def items_reads(self) -> float:
        """Read units of the table of its business items."""
        return float(self.counted["read_units"])


def shape_of(
    worker: Worker, origin: Origin = Origin.QUEUE, *, seconds: float | None = None, factors: tuple[float, ...] = EVEN
) -> Shape:
    """The counted job of a worker.

    Args:
        worker: as its stage runs it.
        origin: how its jobs come.
        seconds: how long one takes; by default as docs/cost.md assumes.
        factors: around that mean, measured.

    Raises:
        KeyError: its jobs are not counted.
    """
    counted = kept()[worker.name]
    mean = LASTS.get(worker.name, SHORT) if seconds is None else seconds
    gated = next((each for each in worker.dependencies if each.gate is not None), None)
    messages = OUTBOX.get(worker.name, 0)
    in_transaction = TRANSACTION_FACTOR.value
    of_parts = in_transaction * counted["parts"] + counted["calls"].get("PutItem", 0)
    shape = Shape(
        worker=worker,
        origin=Origin.QUEUE,
        counted=counted,
        time=Spread(mean, factors),
        dependency=gated,
        call=max(mean - SHORT, 0) if gated is not None else 0,
        jobs_writes=counted["write_units"] - of_parts,
        items_writes=of_parts - in_transaction * messages,
        outbox_writes=(in_transaction + 1) * messages,  # written by the commit, and marked as sent
        messages=messages,
        unended_writes=0,  # who sends a message has a queue that keeps it: nobody watches its record
        owner_writes=0,
        exchanges=counted["exchanges"],
        gate_exchanges=GATE_EXCHANGES if gated is not None else 0,
    )
    return shape if origin is Origin.QUEUE else _accepted(shape)


def _accepted(shape: Shape) -> Shape:
    """The same job, accepted by the front door: its record and its message are one transaction, and it is watched to its end."""
    in_transaction = TRANSACTION_FACTOR.value
    return replace(
        shape,
        origin=Origin.FRONT_DOOR,
        jobs_writes=shape.jobs_writes + in_transaction,
        outbox_writes=shape.outbox_writes + in_transaction + 1,
        messages=shape.messages + 1,
        # Accepting puts the record into three sparse indexes; claiming moves it in none; the commit takes it out of two.
        unended_writes=2 * INDEX_WRITE.value,
        owner_writes=(1 + 2) * INDEX_WRITE.value,  # one lists all jobs of an owner, the other those that have not ended
    )


def counted_workers() -> tuple[Worker, ...]:
    """Workers whose jobs are counted, without the canary: a round a minute is no load."""
    return tuple(worker for worker in WORKERS if worker.name in kept() and worker.name != CANARY)
