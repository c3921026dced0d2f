"""How long an invocation lasts, and how many batches of which size carry a rate: Little's law with batches."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from benchmarks.capacity import quotas

if TYPE_CHECKING:
    from benchmarks.capacity.deployment import Deployment
    from benchmarks.capacity.spread import Spread

STEPS = 40  # of a bisection: far below what anybody reads


def batch_seconds(time: Spread, deployment: Deployment, jobs: float) -> float:
    """Mean seconds of an invocation with so many jobs: side by side the longest counts, beyond the threads in rounds.

    Rounds are taken one after another, though a thread begins its next job at once: an upper bound for batches over `threads`.
    """
    if jobs <= deployment.threads:
        return time.longest_of(jobs)
    return math.ceil(jobs / deployment.threads) * time.longest_of(deployment.threads)


def cycle_seconds(time: Spread, deployment: Deployment, jobs: float) -> float:
    """Mean seconds from one batch of a poller to its next."""
    return quotas.POLL.value + batch_seconds(time, deployment, jobs)


def jobs_of_a_slot(time: Spread, deployment: Deployment, jobs: float) -> float:
    """Jobs a second of one concurrent invocation with batches of this size."""
    return jobs / cycle_seconds(time, deployment, jobs)


def concurrency_for(rate: float, time: Spread, deployment: Deployment, jobs: float) -> float:
    """Concurrent invocations that carry jobs a second in batches of this size: rate times time, divided by the batch."""
    return rate / jobs_of_a_slot(time, deployment, jobs)


def batch_for(rate: float, concurrency: float, time: Spread, deployment: Deployment) -> float:
    """The mean batch with which so much concurrency just carries the rate: what comes while all are busy waits together.

    One where each job finds a free invocation, and the batch size where even full batches do not suffice.
    """
    least, most = 1.0, float(deployment.batch_size)
    if concurrency >= concurrency_for(rate, time, deployment, least):
        return least
    if concurrency <= concurrency_for(rate, time, deployment, most):
        return most
    for _ in range(STEPS):
        middle = (least + most) / 2
        if concurrency_for(rate, time, deployment, middle) > concurrency:
            least = middle
        else:
            most = middle
    return most
