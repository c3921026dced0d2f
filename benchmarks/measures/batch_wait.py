"""Ten jobs that wait in one batch."""

from __future__ import annotations

import time
from itertools import count
from operator import itemgetter
from typing import TYPE_CHECKING

from benchmarks import product
from benchmarks.bench import MILLISECONDS
from benchmarks.declared import Figure, Measure, Sample, Target
from benchmarks.peers import hand_wired
from tests.world import Context

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from benchmarks.bench import Bench

JOBS = 10
WAIT = 50  # milliseconds
SHARED = "To the one wait comes the CPU of ten jobs, whose threads share one interpreter lock; see CPU of the pipeline."
ALONE = "one job alone, of the same side"


def run(bench: Bench) -> Mapping[str, Sample]:
    """Time a batch of ten and a batch of one, for each side."""
    ours, wired = product.in_process(), hand_wired.in_process()
    names = count()

    def timed(handle: Callable[[Any, Any], object], jobs: int) -> float:
        event = product.batch(product.note_body(f"t{next(names)}", wait=WAIT) for _ in range(jobs))
        begun = time.perf_counter()
        handle(event, Context())
        return (time.perf_counter() - begun) * MILLISECONDS

    handlers = {
        "ours": ours.handle,
        "hand_wired": wired.handler,
        "async_blocking": wired.blocking,
        "async_threads": wired.asynchronous,
    }
    sides: dict[str, Callable[[], tuple[float, float]]] = {
        name: lambda handle=handle: (timed(handle, JOBS), timed(handle, 1))  # type: ignore[misc]
        for name, handle in handlers.items()
    }
    found = bench.rounds(sides, bench.number(15, 4))
    samples = {
        name: Sample(tuple(ten for ten, _ in pairs), tuple(one for _, one in pairs)) for name, pairs in found.items()
    }
    samples["ten_to_one"] = samples.pop("ours")
    for name in ("hand_wired", "async_threads"):
        samples[f"beside_{name}"] = Sample.of(found["ours"], found[name], itemgetter(0))
    return samples


MEASURE = Measure(
    name="batch_wait",
    title="Ten jobs that wait 50 ms in one batch",
    explanation=(
        "The wall time of a batch of ten jobs, each of which waits 50 ms for something outside, against the time of a"
        " batch of one; stores are in the process, so that waiting is what is measured. Powertools' batch processor runs"
        " one record after another. Its asynchronous processor is as parallel as its handler: around the idempotent"
        " function, which is synchronous, it is not; with each record's work in a thread it is, up to the loop's own"
        " pool of CPUs + 4 threads, without a bound by deadline."
    ),
    figures=(
        Figure(
            "ten_to_one", "ours: ten jobs in a batch", "ms", ALONE, Target(at_most=1.3), yardstick=True, remark=SHARED
        ),
        Figure("hand_wired", "Powertools' BatchProcessor: ten jobs in a batch", "ms", ALONE, yardstick=True),
        Figure("async_blocking", "AsyncBatchProcessor around the same function", "ms", ALONE, yardstick=True),
        Figure("async_threads", "AsyncBatchProcessor, each record in a thread", "ms", ALONE, yardstick=True),
        Figure("beside_hand_wired", "ten jobs in a batch", "ms", "hand-wired, BatchProcessor", Target(at_most=0.2)),
        Figure(
            "beside_async_threads",
            "ten jobs in a batch",
            "ms",
            "hand-wired, AsyncBatchProcessor with threads",
            tolerance=0.3,
        ),
    ),
    run=run,
)
