"""The model as a fluid: jobs flow, nothing is a whole number, chance is only in the mean of the longest job of a batch.

It runs at any rate in steps of virtual time, where the discrete form (simulation.py) would draw each job. Both have the
same limits and the same growth, and a test compares them where both run. A backlog is what came and is not done, its age
that of its first message; while there is one, batches are full and the mapping grows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.capacity.invocation import jobs_of_a_slot
from benchmarks.capacity.limits import Kind, limits_of
from benchmarks.capacity.mapping import scaling_of

if TYPE_CHECKING:
    from benchmarks.capacity.deployment import Deployment
    from benchmarks.capacity.shape import Shape

DAY = 86_400.0
DUST = 1e-6  # jobs, that the arithmetic leaves


@dataclass(frozen=True, slots=True)
class Flow:
    """What became of a constant rate.

    Attributes:
        rate: jobs a second that came.
        seconds: for how long.
        done: jobs a second that were done, at the end.
        waiting: jobs that wait, at the end.
        oldest: age of the oldest message at the end, in seconds.
        oldest_ever: the highest that it was.
        drained: seconds until nothing waited any more; None if something does.
        behind: messages that wait for the relay, at the end.
    """

    rate: float
    seconds: float
    done: float
    waiting: float
    oldest: float
    oldest_ever: float
    drained: float | None
    behind: float


def flow(  # noqa: PLR0913 - one experiment
    shape: Shape,
    deployment: Deployment,
    rate: float,
    *,
    seconds: float = 3600.0,
    waiting: float = 0.0,
    outage: float = 0.0,
    until_drained: bool = False,
) -> Flow:
    """Let jobs come at a constant rate to a stack that has been idle.

    Args:
        shape: of the jobs.
        deployment: of their worker.
        rate: jobs a second.
        seconds: how long to look.
        waiting: jobs that wait at the beginning, of an outage before it.
        outage: how long that outage was, in seconds: the age of the first of them.
        until_drained: whether to stop when nothing waits.
    """
    scaling, limits = scaling_of(deployment), limits_of(shape, deployment)
    of_a_slot = jobs_of_a_slot(shape.time, deployment, deployment.batch_size)
    rates = [limit for limit in limits if limit.kind is Kind.RATE]
    flat = [limit.jobs for limit in limits if limit.kind in {Kind.DOOR, Kind.BEFORE, Kind.CONCURRENCY}]
    relay = min((limit.jobs for limit in limits if limit.kind is Kind.BEHIND), default=float("inf"))
    finest = min(1.0, seconds / 600)
    now = pressed = behind = 0.0
    oldest = oldest_ever = outage if waiting else 0.0
    done, drained = 0.0, None if waiting else 0.0
    while now < seconds:
        step = min(max(finest, now / 500), seconds - now + DUST)  # what grows does so at the beginning
        most = min(scaling.after(pressed) * of_a_slot, *flat, *(limit.after(now) for limit in rates))
        done = min(most, waiting / step + rate)
        waiting += (rate - done) * step
        waiting = waiting if waiting > DUST else 0.0
        now += step
        pressed += step if waiting else 0.0
        behind = max(behind + (done - relay) * step, 0.0)
        # Who waits came evenly: an outage's jobs at the rate, too.
        oldest = waiting / rate if rate else 0.0
        oldest_ever = max(oldest_ever, oldest)
        if not waiting and drained is None:
            drained = now
            if until_drained:
                break
        if waiting:
            drained = None
    return Flow(rate, now, done, waiting, oldest, oldest_ever, drained, behind)


def drain_seconds(shape: Shape, deployment: Deployment, rate: float, outage: float) -> float | None:
    """Seconds until nothing waits after an outage of the consumers, while jobs go on coming; None beyond a day."""
    found = flow(shape, deployment, rate, seconds=DAY, waiting=rate * outage, outage=outage, until_drained=True)
    return found.drained
