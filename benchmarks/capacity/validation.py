"""The model beside the local stack at three loads and one that is too much: a check of the model's arithmetic on a stand-in, and not of AWS.

Service times come from one light run of their own. Of the runs that are compared the model knows the seed of the arrivals
and the rate; it is then asked for throughput and for the 95th percentile of the latency from when a job was due to its commit.
"""

from __future__ import annotations

import json
import platform
import tempfile
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from statistics import fmean
from typing import TYPE_CHECKING, Any

from benchmarks.capacity.deployment import Deployment
from benchmarks.capacity.local_consumer import CONSUMERS, IDLE, THREADS, WORKER
from benchmarks.capacity.local_run import PACE, moments_of, run_load
from benchmarks.capacity.local_stack import WAIT, surroundings
from benchmarks.capacity.shape import shape_of
from benchmarks.capacity.simulation import Simulation
from benchmarks.capacity.spread import Spread
from benchmarks.machine import commit, machine

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.capacity.local_run import Run
    from benchmarks.capacity.local_stack import Surroundings
    from benchmarks.capacity.seen import Seen, Timing

KEPT = Path(__file__).with_name("validation.json")
LABEL = "a check of the model's arithmetic on the stand-in, not of AWS"
THROUGHPUT_WITHIN, P95_WITHIN = 0.15, 0.30
HIGH = 0.95
RUNS = 20  # of the model, whose mean is the prediction
CALIBRATION = ("calibration", 1.0, 90.0, 11)
LOADS = (
    ("light", 1.0, 80.0, 21),
    ("half", 3.5, 60.0, 22),
    ("near saturation", 5.2, 90.0, 23),
    ("beyond it", 10.0, 40.0, 24),  # below saturation any model has the throughput of the arrivals
)


@dataclass(frozen=True, slots=True)
class Compared:
    """A load, as it was measured and as it was predicted; times in seconds."""

    load: str
    rate: float
    jobs: int
    throughput: float
    predicted_throughput: float
    p95: float
    predicted_p95: float
    batch: float
    predicted_batch: float

    @property
    def throughput_error(self) -> float:
        """Of the prediction, as a share of what was measured."""
        return abs(self.predicted_throughput / self.throughput - 1)

    @property
    def p95_error(self) -> float:
        """Of the prediction, as a share of what was measured."""
        return abs(self.predicted_p95 / self.p95 - 1)

    @property
    def holds(self) -> bool:
        """Whether both are within their bounds."""
        return self.throughput_error <= THROUGHPUT_WITHIN and self.p95_error <= P95_WITHIN


@dataclass(frozen=True, slots=True)
class Calibrated:
    """What a light run tells: how long jobs take, what an invocation costs beside them, and how long a send takes."""

    service: Spread
    timing: Timing
    send: float

    @classmethod
    def of(cls, run: Run) -> Calibrated:
        """From that run."""
        return cls(Spread.of(run.service), run.timing, run.send)


def predict(calibrated: Calibrated, rate: float, seconds: float, seed: int) -> list[Seen]:
    """Runs of the model over the load's own moments, until all jobs have ended."""
    shape = shape_of(WORKER, seconds=calibrated.service.mean, factors=calibrated.service.factors)
    deployment = Deployment.of(WORKER.at_pace(PACE))
    moments = [moment + calibrated.send for moment in moments_of(rate, seconds, seed)]
    runs = (
        Simulation(shape, deployment, Random(number), timing=calibrated.timing)  # noqa: S311 - repeatable
        for number in range(RUNS)
    )
    return [run.run(moments, float("inf")) for run in runs]


def compare(load: str, run: Run, seed: int, calibrated: Calibrated) -> Compared:
    """A run beside its prediction."""
    predicted = predict(calibrated, run.rate, run.seconds, seed)
    latencies = sorted(job.ended - job.due for job in run.jobs)
    return Compared(
        load=load,
        rate=run.rate,
        jobs=len(run.jobs),
        throughput=len(run.jobs) / max(job.ended for job in run.jobs),
        predicted_throughput=fmean(len(seen.ended) / seen.ended[-1] for seen in predicted),
        p95=latencies[int(HIGH * len(latencies))],
        predicted_p95=fmean(seen.latency(HIGH) + calibrated.send for seen in predicted),
        batch=len(run.jobs) / len(run.batches),
        predicted_batch=fmean(seen.batch for seen in predicted),
    )


def validate(tell: Callable[[str, float], None]) -> tuple[Calibrated, list[Compared]]:
    """Run all loads; `tell` hears which one runs, and how far it is (0 to 1).

    Raises:
        LoadError: the machine is too busy to say anything.
    """

    def run(here: Surroundings, name: str, rate: float, seconds: float, seed: int) -> Run:
        return run_load(here, rate, seconds, seed, lambda moment: tell(name, moment / seconds))

    with tempfile.TemporaryDirectory() as folder, surroundings(Path(folder)) as here:
        calibrated = Calibrated.of(run(here, *CALIBRATION))
        compared = [compare(load[0], run(here, *load), load[3], calibrated) for load in LOADS]
    return calibrated, compared


def keep(calibrated: Calibrated, compared: list[Compared]) -> None:
    """Write down what was measured, where and when."""
    found: dict[str, Any] = {
        "label": LABEL,
        "date": datetime.now(UTC).date().isoformat(),
        "commit": commit(),
        "machine": {**machine(), "python": platform.python_version()},
        "stack": {
            "worker": WORKER.name,
            "consumers": CONSUMERS,
            "threads": THREADS,
            "batch_size": WORKER.batch_size,
            "wait": WAIT.total_seconds(),
            "idle": IDLE,
        },
        "calibration": {
            "rate": CALIBRATION[1],
            "service": calibrated.service.mean,
            "factors": [round(factor, 4) for factor in calibrated.service.factors],
            "send": calibrated.send,
            "timing": asdict(calibrated.timing),
        },
        "loads": [
            {
                **asdict(each),
                "throughput_error": each.throughput_error,
                "p95_error": each.p95_error,
                "holds": each.holds,
            }
            for each in compared
        ],
    }
    KEPT.write_text(f"{json.dumps(found, indent=1)}\n", encoding="utf-8")


def kept() -> dict[str, Any]:
    """What was measured last."""
    known: dict[str, Any] = json.loads(KEPT.read_text(encoding="utf-8"))
    return known


def measured_factors() -> tuple[float, ...]:
    """How the service times of the light run lie around their mean, for the model of other loads."""
    return tuple(kept()["calibration"]["factors"])
