"""The measures, a module each; in the order of the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.measures import (
    arrivals,
    batch_wait,
    cache,
    calls,
    cold_start,
    dynamodb_cpu,
    front_door,
    leases,
    pipeline_cpu,
    relay,
    throughput,
    zip_size,
)

if TYPE_CHECKING:
    from benchmarks.declared import Measure

MEASURES: tuple[Measure, ...] = (
    batch_wait.MEASURE,
    arrivals.MEASURE,
    calls.MEASURE,
    pipeline_cpu.MEASURE,
    dynamodb_cpu.MEASURE,
    leases.MEASURE,
    cache.MEASURE,
    cold_start.MEASURE,
    zip_size.MEASURE,
    throughput.MEASURE,
    front_door.MEASURE,
    relay.MEASURE,
)


def measure_of(name: str) -> Measure:
    """The measure of that name.

    Raises:
        KeyError: there is none.
    """
    return {measure.name: measure for measure in MEASURES}[name]
