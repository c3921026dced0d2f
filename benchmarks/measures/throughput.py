"""Jobs a second and jobs for a second of CPU, on one core, against Celery on SQS and Dramatiq on Redis."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

from benchmarks.declared import Figure, Measure, Sample, Store, Target
from benchmarks.load import THREADS, Load

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.bench import Bench

WAITS = {"empty": 0, "io": 20}  # milliseconds
UNITS = {"wall": "jobs a second", "cpu": "jobs a CPU second"}
SAID = {"empty": "empty jobs", "io": f"jobs that wait {WAITS['io']} ms"}
OURS, CELERY, DRAMATIQ = "benchmarks.own_worker", "benchmarks.peers.celery_worker", "benchmarks.peers.dramatiq_worker"
SIDES = {  # module, with the guarantees, polling the queue itself
    "ours": (OURS, True, True),
    "handed": (OURS, True, False),
    "celery": (CELERY, True, True),
    "celery_bare": (CELERY, False, True),
    "dramatiq": (DRAMATIQ, True, True),
    "dramatiq_bare": (DRAMATIQ, False, True),
}


@dataclass(frozen=True, slots=True)
class Pair:
    """Which side of ours stands beside which peer."""

    ours: str
    how: str
    peer: str
    beside: str
    has_target: bool
    remark: str = ""


POLLING, HANDED = "we poll moto's SQS, too", "batches are handed to us, as by Lambda"
IN_ONE_PROCESS = (
    "The peer's jobs are spread over its threads as they come, ours by batches: a batch ends with its slowest job, and begins"
    " and ends its threads. See CPU of the pipeline."
)
BARE = "Bare, the peer promises nothing: no idempotency, no lock, no invalidation. We keep all of it."
PAIRS = {
    "celery": Pair("ours", POLLING, "celery", "Celery on SQS, equal guarantees", has_target=True),
    "celery_bare": Pair("ours", POLLING, "celery_bare", "Celery on SQS, bare", has_target=False, remark=BARE),
    "dramatiq": Pair(
        "handed", HANDED, "dramatiq", "Dramatiq on Redis, equal guarantees", has_target=True, remark=IN_ONE_PROCESS
    ),
    "dramatiq_bare": Pair("handed", HANDED, "dramatiq_bare", "Dramatiq on Redis, bare", has_target=False, remark=BARE),
    "dramatiq_polling": Pair(
        "ours",
        POLLING,
        "dramatiq",
        "Dramatiq on Redis, equal guarantees",
        has_target=False,
        remark="The peer's queue is a real Valkey, ours here is moto: the wall says more of moto than of either.",
    ),
}
PATIENCE = 150


def run(bench: Bench) -> Mapping[str, Sample]:
    """Run each worker in turn, each time in a fresh process with a queue of its own."""
    numbers = count()
    jobs, warm = bench.number(200, 100), bench.number(30, 20)

    def rates(module: str, load: Load) -> dict[str, float]:
        environ = {**os.environ, "BENCH_QUEUE": f"notes-{next(numbers)}"}
        command = (sys.executable, "-m", module, load.text)
        ran = subprocess.run(  # noqa: S603 - ourselves
            command, stdout=subprocess.PIPE, text=True, check=True, env=environ, timeout=PATIENCE
        )
        return {what: load.jobs / seconds for what, seconds in json.loads(ran.stdout).items()}

    sides = {
        f"{side} {kind}": partial(rates, module, Load(jobs, warm, wait, guarded, polled))
        for side, (module, guarded, polled) in SIDES.items()
        for kind, wait in WAITS.items()
    }
    found = bench.rounds(sides, bench.number(5, 1))

    def column(side: str, kind: str, what: str) -> tuple[float, ...]:
        return tuple(each[what] for each in found[f"{side} {kind}"])

    return {
        f"{kind}_{name}_{what}": Sample(column(pair.ours, kind, what), column(pair.peer, kind, what))
        for kind in WAITS
        for name, pair in PAIRS.items()
        for what in UNITS
    }


def _figures() -> list[Figure]:
    return [
        Figure(
            f"{kind}_{name}_{what}",
            f"{SAID[kind]}; {pair.how}",
            unit,
            pair.beside,
            Target(at_least=1.0) if pair.has_target else None,
            more_is_better=True,
            tolerance=0.25,
            remark=pair.remark,
        )
        for kind in WAITS
        for name, pair in PAIRS.items()
        for what, unit in UNITS.items()
    ]


MEASURE = Measure(
    name="throughput",
    title="Throughput on one core",
    explanation=(
        f"Jobs are put on the queue first; then a worker with {THREADS} threads, kept to one core, does them, and the time"
        " between the last warm-up job and the last of all is taken, by the wall and by the CPU of the worker's process."
        " On AWS Lambda polls, receives and deletes; beside Celery that is counted as ours, beside Dramatiq, whose queue is"
        " as fast as Valkey, batches are handed over as Lambda does. SQS is moto's server for Celery and for us, Valkey is"
        " real, and DynamoDB answers at once, all on the other core; moto is slow, which the wall shows and the CPU does"
        " not. A job takes one lock and invalidates one tag. At equal guarantees the peers' task is Powertools' idempotent"
        " function on DynamoDB with redis-py's lock and"
        " DEL; bare it is the wait alone, and ours keeps all guarantees."
    ),
    figures=tuple(_figures()),
    run=run,
    stores=frozenset({Store.VALKEY, Store.MOTO, Store.STUB}),
    pinned=True,
)
