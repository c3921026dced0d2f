"""A healthy day, made up for whatever metrics are asked for: a wave over the day, and a night in which nothing happens."""

from __future__ import annotations

import math
from random import Random
from typing import TYPE_CHECKING

from watch.series import Metrics
from watch.usual import DAY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from watch.series import Name

NIGHT = range(5 * 60)  # a queue that is idle for hours tells CloudWatch nothing
BUSIEST = 60  # jobs a minute
SEED = 7
LEAST_LOAD = 3


def load(minute: int) -> float:
    """Jobs a minute: none in the night, few in the morning, most in the afternoon."""
    of_day = minute % DAY
    if of_day in NIGHT:
        return 0
    return LEAST_LOAD + BUSIEST * math.sin(math.pi * (of_day - NIGHT.stop) / (DAY - NIGHT.stop)) ** 2


def healthy(names: Iterable[Name], minutes: int, begin: int = 0) -> Metrics:
    """Metrics of a healthy time that begins at a minute of a day."""
    metrics = Metrics(minutes, begin)
    for name in sorted(names, key=lambda each: (each.metric, each.subject)):
        make, random = _of(name), Random(f"{SEED} {name.metric} {name.subject}")  # noqa: S311 - made-up data
        for minute in range(minutes):
            metrics.put(name, minute, make(load(begin + minute), random))
    return metrics


def _of(name: Name) -> Callable[[float, Random], Sequence[float]]:
    """How a metric goes with the load."""
    if name.namespace == "AWS/SQS" and ("DeadLetters" in name.subject or "GivenUp" in name.subject):
        return _nothing
    return _MAKERS.get(name.metric, _nothing)


def _nothing(_load: float, _random: Random) -> Sequence[float]:
    """Of what speaks only when something is wrong."""
    return ()


def _always(value: float) -> Callable[[float, Random], Sequence[float]]:
    return lambda _load, _random: (value,)


def _with(share: float) -> Callable[[float, Random], Sequence[float]]:
    """A number that goes with the load, and is told only while there is any."""
    return lambda load, random: (round(load * share * random.uniform(0.8, 1.2)),) if load else ()


def _seldom(share: float) -> Callable[[float, Random], Sequence[float]]:
    """Single events, each of so many jobs."""
    return lambda load, random: (1,) if random.random() < load * share else ()


def _zero(load: float, _random: Random) -> Sequence[float]:
    return (0,) if load else ()


def _times(typical: float) -> Callable[[float, Random], Sequence[float]]:
    """As many times as there are jobs, in milliseconds or seconds, spread around a typical one."""
    return lambda load, random: [typical * random.lognormvariate(0, 0.3) for _ in range(round(load))]


_MAKERS: dict[str, Callable[[float, Random], Sequence[float]]] = {
    # SQS
    "ApproximateNumberOfMessagesVisible": _with(0.3),
    "ApproximateNumberOfMessagesNotVisible": _with(0.2),
    "ApproximateAgeOfOldestMessage": lambda load, random: (random.uniform(0, 3),) if load else (),
    "NumberOfMessagesSent": _with(1),
    "NumberOfMessagesDeleted": _with(1),
    # Lambda
    "Invocations": _with(0.5),
    "Errors": _zero,
    "Throttles": _zero,
    "Duration": _times(400),
    "ConcurrentExecutions": _with(0.05),
    "IteratorAge": _times(200),
    # ours
    "succeeded": _with(1),
    "records_succeeded": _with(1),
    "records_failed": _seldom(0.002),
    "retried": _seldom(0.002),
    "duplicates": _seldom(0.01),
    "contended": _seldom(0.01),
    "claim_lost": _seldom(0.0005),
    "duration": _times(300),
    "lock_held": _times(300),
    "dependency_calls": _with(1),
    "dependency_timeouts": _seldom(0.002),
    "outbox_lag": _always(0),
    "latency": _always(2000),  # a canary goes every minute, also in the night
    "cache_hit": _with(4),
    "cache_miss": _with(0.3),
    # API
    "Count": _with(6),
    "5xx": _zero,
    "Latency": _times(80),
    # DynamoDB
    "SuccessfulRequestLatency": _times(5),
    "ConsumedReadCapacityUnits": _with(6),
    "ConsumedWriteCapacityUnits": _with(8),
    "TransactionConflict": _seldom(0.0005),
    # ElastiCache
    "ElastiCacheProcessingUnits": lambda load, random: (1000 + 40 * load * random.uniform(0.9, 1.1),),
    "BytesUsedForCache": _always(60 * 1024 * 1024),
    "ThrottledCmds": _always(0),
    "Evictions": _always(0),
}
