"""The curves: for each worker and rate what it needs, what bounds it first, what it costs, and how it drains an outage."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from benchmarks.capacity.arrivals import bursts, poisson
from benchmarks.capacity.deployment import Deployment
from benchmarks.capacity.dollars import of_a_million_jobs
from benchmarks.capacity.fluid import drain_seconds, flow
from benchmarks.capacity.invocation import batch_for, concurrency_for
from benchmarks.capacity.limits import limits_of
from benchmarks.capacity.mapping import scaling_of
from benchmarks.capacity.plan import HEADROOM, plan
from benchmarks.capacity.shape import Origin, counted_workers, shape_of
from benchmarks.capacity.simulation import Simulation
from benchmarks.capacity.validation import measured_factors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from benchmarks.capacity.limits import Limit
    from benchmarks.capacity.plan import Plan
    from benchmarks.capacity.shape import Shape
    from shared.worker import Worker

KEPT = Path(__file__).with_name("curves.json")
RATES = (*(digit * 10**power for power in range(1, 5) for digit in (1, 2, 5)), 100_000)
HOUR = 3600.0
OUTAGE = HOUR
DRAWN_TO = 500  # jobs a second, up to which each job is drawn (simulation.py)
DRAWN = 120.0  # seconds of virtual time, of which the first half is not counted
BURST_EVERY = 10.0  # seconds
HIGH = 0.95
SEED = 7


@dataclass(frozen=True, slots=True)
class Drawn:
    """What the discrete form says of a plan; times in seconds."""

    p95: float
    p95_bursts: float
    batch: float
    concurrency: float


@dataclass(frozen=True, slots=True)
class Point:
    """A worker at a rate.

    Attributes:
        rate: jobs a second.
        least: concurrent invocations in full batches.
        most: of one job each.
        bottleneck: what bounds it first as it is declared; None if that carries the rate.
        setting: that moves it.
        bounds: all that are below the rate as it is declared, the lowest first.
        oldest: age of the oldest message after an hour of the rate, as declared, in seconds.
        planned_oldest: the highest age under the plan while everything grows, in seconds.
        planned_within: seconds until the plan has caught up; None if never within an hour.
        in_the_way: what no setting moves; None if the plan carries the rate with headroom.
        changes: how many settings the plan moves.
        dollars: of a million jobs under the plan.
        drain: seconds to drain an outage of an hour under the plan; None beyond a day.
        declared_drain: the same as declared.
        drawn: by the discrete form, at rates at which it is run.
    """

    rate: float
    least: float
    most: float
    bottleneck: str | None
    setting: str | None
    bounds: tuple[str, ...]
    oldest: float
    planned_oldest: float
    planned_within: float | None
    in_the_way: str | None
    changes: int
    dollars: float
    drain: float | None
    declared_drain: float | None
    drawn: Drawn | None


@dataclass(frozen=True, slots=True)
class Curve:
    """A worker's points, and everything that bounds it as declared, the lowest first."""

    worker: str
    origin: Origin
    seconds: float
    ladder: tuple[Limit, ...]
    points: tuple[Point, ...]


def curve(
    worker: Worker,
    origin: Origin = Origin.QUEUE,
    *,
    rates: Sequence[float] = RATES,
    seconds: float | None = None,
    tell: Callable[[], None] = lambda: None,
) -> Curve:
    """The points of a worker; `tell` hears of each."""
    shape = shape_of(worker, origin, seconds=seconds, factors=measured_factors())
    declared = Deployment.of(worker)
    points = []
    for rate in rates:
        points.append(point(shape, declared, rate, lasts=seconds))
        tell()
    return Curve(worker.name, origin, shape.time.mean, tuple(limits_of(shape, declared)), tuple(points))


def point(shape: Shape, declared: Deployment, rate: float, *, lasts: float | None = None) -> Point:
    """A worker at a rate."""
    made = plan(shape, declared, rate)
    below = [limit for limit in limits_of(shape, declared) if limit.jobs < rate]
    first = below[0] if below else None
    planned = flow(shape, made.deployment, rate)
    batch = steady_batch(shape, made.deployment, rate)
    return Point(
        rate=rate,
        least=concurrency_for(rate, shape.time, declared, declared.batch_size),
        most=concurrency_for(rate, shape.time, declared, 1),
        bottleneck=None if first is None else first.name,
        setting=None if first is None else first.setting,
        bounds=tuple(limit.name for limit in below),
        oldest=flow(shape, declared, rate).oldest,
        planned_oldest=planned.oldest_ever,
        planned_within=planned.drained,
        in_the_way=made.in_the_way[0].name if made.in_the_way else None,
        changes=len(made.changes),
        dollars=sum(of_a_million_jobs(shape, batch, lasts=lasts).values()),
        drain=drain_seconds(shape, made.deployment, rate, OUTAGE),
        declared_drain=drain_seconds(shape, declared, rate, OUTAGE),
        drawn=_drawn(shape, made, rate) if rate <= DRAWN_TO else None,
    )


def steady_batch(shape: Shape, deployment: Deployment, rate: float) -> float:
    """The batch in the long run: the mapping has grown while messages waited, and no further than they need."""
    needed = math.ceil(concurrency_for(rate, shape.time, deployment, deployment.batch_size))
    scaling = scaling_of(deployment)
    return batch_for(rate, min(max(scaling.first, needed), scaling.most), shape.time, deployment)


def curves(workers: Iterable[Worker], origins: Iterable[Origin], tell: Callable[[], None]) -> list[Curve]:
    """All of them."""
    origins = tuple(origins)
    return [curve(worker, origin, tell=tell) for worker in workers for origin in origins]


def keep(found: list[Curve]) -> None:
    """Write them down."""
    known = {"outage": OUTAGE, "headroom": HEADROOM, "curves": [asdict(each) for each in found]}
    KEPT.write_text(f"{json.dumps(rounded(known), indent=1)}\n", encoding="utf-8")


def kept() -> dict[str, Any]:
    """What was written down last."""
    known: dict[str, Any] = json.loads(KEPT.read_text(encoding="utf-8"))
    return known


def rounded(value: Any) -> Any:  # noqa: ANN401 - JSON
    """Numbers to four digits: the model knows no more."""
    match value:
        case dict():
            return {name: rounded(each) for name, each in value.items()}
        case list() | tuple():
            return [rounded(each) for each in value]
        case float() if math.isinf(value):
            return None
        case float():
            return float(f"{value:.4g}")
        case _:
            return value


def all_workers() -> tuple[Worker, ...]:
    """Those with a curve."""
    return counted_workers()


def _drawn(shape: Shape, made: Plan, rate: float) -> Drawn:
    """Each job of some minutes, coming one by one and in bursts."""
    half = DRAWN / 2
    one_by_one = Simulation(shape, made.deployment, Random(SEED)).run(  # noqa: S311 - repeatable
        poisson(rate, DRAWN, Random(SEED + 1)),  # noqa: S311
        DRAWN,
    )
    in_bursts = Simulation(shape, made.deployment, Random(SEED)).run(  # noqa: S311
        bursts(rate, DRAWN, Random(SEED + 2), every=BURST_EVERY),  # noqa: S311
        DRAWN,
    )
    return Drawn(
        one_by_one.latency(HIGH, half), in_bursts.latency(HIGH, half), one_by_one.batch, one_by_one.busy / DRAWN
    )
