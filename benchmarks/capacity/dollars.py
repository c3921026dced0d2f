"""What a million jobs cost in the model: benchmarks/cost.py's own arithmetic, at the batch that the model has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.capacity.limits import INDEX_WRITES_OF_A_MESSAGE
from benchmarks.capacity.shape import Origin, shape_of
from benchmarks.cost import SHORT, of_a_million
from infra import prices
from infra.prices import MILLION

if TYPE_CHECKING:
    from benchmarks.capacity.shape import Shape

DOOR_GB = 0.5  # memory of the front door, as a worker's by default
RELAY_GB = 0.25


def of_a_million_jobs(shape: Shape, batch: float, *, lasts: float | None = None) -> dict[str, float]:
    """Dollars by what they are for.

    Args:
        shape: of the job; where it came through the front door, what that, the relay and the indexes cost is added.
        batch: jobs of an invocation.
        lasts: seconds of an invocation; by default as docs/cost.md assumes.
    """
    parts = of_a_million(shape.worker.name, shape.counted, batch, lasts)
    if shape.origin is Origin.QUEUE:
        return parts
    direct = shape_of(shape.worker)
    accepted = shape.jobs_writes - direct.jobs_writes + shape.outbox_writes - direct.outbox_writes
    indexed = shape.unended_writes + shape.owner_writes + INDEX_WRITES_OF_A_MESSAGE
    second = MILLION * prices.GB_SECOND["arm64"]
    return {
        **parts,
        "DynamoDB": parts["DynamoDB"] + (accepted + indexed) * prices.WRITE_UNITS,
        "API": prices.API_REQUESTS,
        "front door": prices.INVOCATIONS + SHORT * DOOR_GB * second,
        "relay": prices.INVOCATIONS / batch + SHORT * RELAY_GB * second / batch,
    }
