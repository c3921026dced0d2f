"""CPU of the pipeline for each job, without its stores."""

from __future__ import annotations

import time
from itertools import count
from typing import TYPE_CHECKING

from benchmarks import product
from benchmarks.bench import MICROSECONDS
from benchmarks.declared import Figure, Measure, Sample, Target
from benchmarks.peers import hand_wired
from tests.world import Context

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from benchmarks.bench import Bench

JOBS = 10
BATCHES = 30  # in a round
PEER = "hand-wired, stub store"
REMARK = (
    "The peer's function has no versions, attempts, fencing, deadlines, outbox or lease to keep, and runs its records on one"
    " thread. Ours pays for those values, and for ten threads that share one interpreter lock."
)


def run(bench: Bench) -> Mapping[str, Sample]:
    """Time batches of ten and of one by the process's CPU clock."""
    ours, wired = product.in_process(), hand_wired.in_process()
    names = count()

    def spent(handle: Callable[[Any, Any], object], jobs: int, job_type: str) -> Callable[[], float]:
        def one_round() -> float:
            events = [
                product.batch(product.note_body(f"t{next(names)}", job_type=job_type) for _ in range(jobs))
                for _ in range(BATCHES)
            ]
            begun = time.process_time()
            for event in events:
                handle(event, Context())
            return (time.process_time() - begun) * MICROSECONDS / (BATCHES * jobs)

        return one_round

    sides = {
        f"{side} {jobs} {job_type}": spent(handle, jobs, job_type)
        for side, handle in (("ours", ours.handle), ("peer", wired.handler))
        for jobs in (JOBS, 1)
        for job_type in ("note", "plain-note")
    }
    found = bench.rounds(sides, bench.number(40, 8))
    return {
        name: Sample(found[f"ours {jobs} {job_type}"], found[f"peer {jobs} {job_type}"])
        for name, jobs, job_type in (
            ("batch", JOBS, "note"),
            ("alone", 1, "note"),
            ("batch_without_lock", JOBS, "plain-note"),
        )
    }


MEASURE = Measure(
    name="pipeline_cpu",
    title="CPU of the pipeline for each job, with stores in the process",
    explanation=(
        "CPU of the whole process for each job, through the product's consumer with its in-process stores and its own"
        " telemetry, against the hand-wired function with a stub persistence layer that is a dictionary, Powertools'"
        " Logger and Metrics, and pydantic. Ours takes and gives a lease, checks the item's version, commits item,"
        " record and outbox together and invalidates a tag; the peer has no lock and no cache here."
    ),
    figures=(
        Figure("batch", "CPU for each job of a batch of ten", "µs", PEER, Target(at_most=1.0), remark=REMARK),
        Figure("alone", "CPU for a job alone in its batch", "µs", PEER, Target(at_most=1.0), remark=REMARK),
        Figure("batch_without_lock", "the same batch without a lock", "µs", PEER, remark=REMARK),
    ),
    run=run,
)
