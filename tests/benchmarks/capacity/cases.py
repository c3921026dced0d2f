"""A worker whose bounds are far away, so that a test can move one near."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from benchmarks.capacity.deployment import Deployment
from benchmarks.capacity.shape import Origin, Shape, shape_of
from functions import invoices, payments, users

PAYMENTS, USERS, INVOICES = payments.WORKER, users.WORKER, invoices.WORKER
FAR = 1_000_000


def seeded(seed: int) -> Random:
    """Chance that is the same in each run."""
    return Random(seed)  # noqa: S311 - repeatable


def plain(seconds: float = 0.5, origin: Origin = Origin.QUEUE) -> Shape:
    """A job that always takes so long and calls nobody."""
    return shape_of(USERS, origin, seconds=seconds)


def wide(**settings: float | None) -> Deployment:
    """Everything is far away but the mapping, and what is given."""
    far = Deployment(
        max_concurrency=1000,
        account=FAR,
        table_units=FAR,
        warm_writes=FAR,
        index_keys=FAR,
        stream_shards=FAR,
        cache_units=FAR,
        door_requests=FAR,
        api_requests=FAR,
    )
    return replace(far, **settings)  # type: ignore[arg-type]
