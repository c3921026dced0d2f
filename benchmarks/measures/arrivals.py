"""Latency under jobs that arrive by a schedule, whoever is ready or not."""

from __future__ import annotations

import time
from functools import partial
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Any

from redis import Redis

from benchmarks import product
from benchmarks.bench import MILLISECONDS, percentile
from benchmarks.declared import Figure, Measure, Sample, Store, Target
from benchmarks.peers import hand_wired
from shared.backends.aws import client
from tests.world import Context

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from benchmarks.bench import Bench

WAIT = 50  # milliseconds
RATE = 12  # jobs a second: one after another they take 60 % of the time at the least
SECONDS = 4
MOST = 10  # in a batch
PEER = "hand-wired"
SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


def run(bench: Bench) -> Mapping[str, Sample]:
    """Have the same arrivals come to each side, a schedule of its own for each round."""
    ours = product.on_stores(product.settings(bench.valkey_port))
    wired = hand_wired.on_stores(client("dynamodb"), Redis(port=bench.valkey_port), "jobs", "things")
    names, turns = count(), {"ours": count(), "peer": count()}

    def side(name: str, handle: Callable[[Any, Any], object]) -> Callable[[], list[float]]:
        def one_round() -> list[float]:
            schedule = arrivals(Random(next(turns[name])))  # noqa: S311 - the same for both sides
            return latencies(schedule, lambda jobs: handle(batch(jobs), Context()))

        return one_round

    def batch(jobs: int) -> dict[str, Any]:
        return product.batch(product.note_body(f"t{next(names)}", wait=WAIT) for _ in range(jobs))

    sides = {"ours": side("ours", ours.handle), "peer": side("peer", wired.handler)}
    found = bench.rounds(sides, bench.number(10, 2))
    return {
        name: Sample.of(found["ours"], found["peer"], partial(percentile, share=share))
        for name, share in SHARES.items()
    }


def arrivals(random: Random) -> list[float]:
    """When jobs come, in seconds from the beginning: as independent clients send them, at that rate in the mean."""
    moments, moment = [], 0.0
    while (moment := moment + random.expovariate(RATE)) < SECONDS:
        moments.append(moment)
    return moments


def latencies(schedule: list[float], handle: Callable[[int], object]) -> list[float]:
    """Milliseconds from when each job was due to the end of its batch; a batch takes what is there, ten at the most."""
    begun = time.perf_counter()
    found: list[float] = []
    while len(found) < len(schedule):
        first = schedule[len(found)]
        time.sleep(max(0.0, begun + first - time.perf_counter()))
        now = time.perf_counter() - begun
        due = [moment for moment in schedule[len(found) :] if moment <= now][:MOST] or [first]
        handle(len(due))
        ended = time.perf_counter() - begun
        found += [(ended - moment) * MILLISECONDS for moment in due]
    return found


MEASURE = Measure(
    name="arrivals",
    title="Latency of jobs that arrive by a schedule",
    explanation=(
        f"Jobs that wait {WAIT} ms arrive as independent clients send them, {RATE} a second in the mean, by a schedule that"
        " was fixed before and is the same for both sides. One poller takes what has arrived, ten at the most, and invokes"
        " the function; latency counts from when a job was due, so that nothing is hidden by a late beginning. On a real"
        " Valkey, and a DynamoDB that answers at once."
    ),
    figures=(
        Figure("p50", "latency, p50", "ms", PEER, Target(at_most=1.0), tolerance=0.4),
        Figure("p95", "latency, p95", "ms", PEER, Target(at_most=1.0), tolerance=0.4),
        Figure("p99", "latency, p99", "ms", PEER, Target(at_most=1.0), tolerance=0.4),
    ),
    run=run,
    stores=frozenset({Store.VALKEY, Store.STUB}),
)
