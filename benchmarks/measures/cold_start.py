"""What a cold start loads: modules and bytes of each function, and the time of its imports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING

from benchmarks import product
from benchmarks.bench import MILLISECONDS
from benchmarks.declared import Figure, Measure, Sample, Store, Target

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.bench import Bench

FUNCTIONS = (
    "canary",
    "front_door",
    "imports",
    "inventory",
    "invoices",
    "lookout",
    "notifications",
    "outbox_relay",
    "outbox_sweeper",
    "part_counter",
    "payments",
    "users",
)
TIMED = "payments"
DRAWN = frozenset({TIMED, "front_door", "outbox_relay"})
A_THIRD_FEWER = 2 / 3
MIB = 1024 * 1024
PEER = "importing boto3, Powertools, pydantic, redis"
MORE_IS_LOADED = (
    "A function loads what the peer loads (boto3, redis, pydantic, parts of Powertools), and `shared` besides. What only some"
    " paths need can be imported on first use."
)
NO_JOB = {"batchItemFailures": []}  # type: ignore[var-annotated]


def run(bench: Bench) -> Mapping[str, Sample]:
    """Import each function once in a process of its own, and some again and again for the time it takes."""
    environ = {**os.environ, **_settings(bench.valkey_port)}
    peer = _told("peer", environ)
    samples: dict[str, Sample] = {}
    for place, name in enumerate(FUNCTIONS):
        found = _told(f"functions.{name}", environ)
        samples[f"modules_{name}"] = Sample((found["modules"],), (peer["modules"],))
        samples[f"bytes_{name}"] = Sample((found["bytes"] / MIB,), (peer["bytes"] / MIB,))
        bench.progress(place / len(FUNCTIONS) / 2)
    tasks = {"ours": f"functions.{TIMED}", "peer": "peer", "job-ours": "job-ours", "job-peer": "job-peer"}
    sides = {side: partial(_told, task, environ) for side, task in tasks.items()}
    told = bench.rounds(sides, bench.number(15, 3))

    def sample(what: str, ours: str, other: str, factor: float) -> Sample:
        return Sample.of(told[ours], told[other], lambda each: each[what] * factor)

    return {
        **samples,
        "import_wall": sample("wall", "ours", "peer", MILLISECONDS),
        "import_cpu": sample("cpu", "ours", "peer", MILLISECONDS),
        "first_job_modules": sample("modules", "job-ours", "job-peer", 1),
        "first_job_bytes": sample("bytes", "job-ours", "job-peer", 1 / MIB),
        "first_job_wall": sample("wall", "job-ours", "job-peer", MILLISECONDS),
        "first_job_cpu": sample("cpu", "job-ours", "job-peer", MILLISECONDS),
    }


def _told(task: str, environ: Mapping[str, str]) -> dict[str, float]:
    command = (sys.executable, "-m", "benchmarks.imported", task)
    ran = subprocess.run(command, capture_output=True, text=True, check=True, env=environ)  # noqa: S603 - ourselves
    told = json.loads(ran.stdout)
    if task.startswith("job") and told["answer"] != NO_JOB:
        message = f"{task}: the job did not complete: {told['answer']}"
        raise AssertionError(message)
    return {name: float(value) for name, value in told.items() if name != "answer"}


def _settings(port: int) -> dict[str, str]:
    told = product.settings(port)
    return {
        **told.to_environ(),
        "TAHAN_TABLE_USERS": "users",
        "TAHAN_QUEUE_USERS": "http://127.0.0.1/users",
        "TAHAN_DEAD_LETTER_QUEUE_USERS": "http://127.0.0.1/dead",
    }


def _counted() -> list[Figure]:
    return [
        Figure(
            f"{what}_{name}",
            f"functions.{name}: {said}",
            unit,
            PEER,
            Target(at_most=A_THIRD_FEWER),
            tolerance=0.02,
            drawn=name in DRAWN,
            remark=MORE_IS_LOADED,
        )
        for name in FUNCTIONS
        for what, said, unit in (("modules", "modules", "modules"), ("bytes", "bytes loaded", "MiB"))
    ]


FIRST = "the hand-wired function's first job"
MEASURE = Measure(
    name="cold_start",
    title="What a cold start loads",
    explanation=(
        "Modules besides the bare interpreter's, and the bytes of their bytecode and shared objects, of importing each"
        " function in a process of its own, against importing boto3, Powertools' batch processor, idempotency, logger and"
        " metrics, pydantic and redis together in the same interpreter. Times are of fresh processes, one side and the"
        f" other in turn, with files in the system's cache; imports of `functions.{TIMED}`, and `functions.users` up to"
        " the end of its first job with connections to Valkey and to a DynamoDB that answers at once. The first job loads"
        " what only a client needs: botocore's models, TLS, redis."
    ),
    figures=(
        *_counted(),
        Figure(
            "import_wall", f"functions.{TIMED}: time of its import", "ms", PEER, tolerance=0.2, remark=MORE_IS_LOADED
        ),
        Figure("import_cpu", f"functions.{TIMED}: CPU of its import", "ms", PEER, tolerance=0.2, remark=MORE_IS_LOADED),
        Figure(
            "first_job_modules", "modules after the first job", "modules", FIRST, tolerance=0.02, remark=MORE_IS_LOADED
        ),
        Figure(
            "first_job_bytes", "bytes loaded after the first job", "MiB", FIRST, tolerance=0.02, remark=MORE_IS_LOADED
        ),
        Figure(
            "first_job_wall",
            "from the import to the end of the first job",
            "ms",
            FIRST,
            tolerance=0.2,
            remark=MORE_IS_LOADED,
        ),
        Figure(
            "first_job_cpu",
            "CPU from the import to the end of the first job",
            "ms",
            FIRST,
            tolerance=0.2,
            remark=MORE_IS_LOADED,
        ),
    ),
    run=run,
    stores=frozenset({Store.VALKEY, Store.STUB}),
)
