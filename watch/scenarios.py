"""Days that are not healthy, as data: what changes when, and which alarms must ring for it, and be silent again at the end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from watch.healthy import healthy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from watch.series import Metrics, Name

BEGIN = 14 * 60  # of the day: there is traffic
HOUR = 60
FROM = 30  # a scenario's trouble begins when its alarms have seen that all is well
ALWAYS = range(10**6)


@dataclass(frozen=True, slots=True)
class Change:
    """What a metric is during some minutes, for all whose dimensions hold a word.

    Attributes:
        metric: its name.
        samples: of each of the minutes; none is silence.
        during: minutes of the scenario.
        of: a word of whose it is, or of its namespace.
    """

    metric: str
    samples: Sequence[float] | Callable[[int], Sequence[float]]
    during: range
    of: str = ""

    def fits(self, name: Name) -> bool:
        """Whether a metric is one of those."""
        return name.metric == self.metric and self.of in f"{name.namespace} {name.subject}"

    def at(self, minute: int) -> Sequence[float]:
        """Its samples then."""
        return self.samples(minute) if callable(self.samples) else self.samples


@dataclass(frozen=True, slots=True)
class Scenario:
    """A trouble that begins and ends.

    Attributes:
        name: what happens.
        changes: to a healthy time.
        rings: the alarms that must ring and be silent at the end, by the names of their declarations.
        minutes: how long it is looked at.
    """

    name: str
    changes: tuple[Change, ...]
    rings: frozenset[str]
    minutes: int = 2 * HOUR

    def play(self, names: Iterable[Name]) -> Metrics:
        """The metrics of its time."""
        names = list(names)
        metrics = healthy(names, self.minutes, BEGIN)
        for change in self.changes:
            for name in names:
                if change.fits(name):
                    for minute in change.during[: self.minutes]:
                        metrics.change(name, minute, change.at(minute))
        return metrics


def _from(minutes: int, begin: int = FROM) -> range:
    return range(begin, begin + minutes)


def _of(*names: str) -> frozenset[str]:
    return frozenset(names)


VISIBLE, IN_FLIGHT = "ApproximateNumberOfMessagesVisible", "ApproximateNumberOfMessagesNotVisible"
AGE, DELETED = "ApproximateAgeOfOldestMessage", "NumberOfMessagesDeleted"
SOURCE, DEAD = "QueuesSource", "QueuesDeadLetters"
DAYS = 24 * 60 * 60

SCENARIOS = (
    Scenario(
        "a backlog without progress",
        (
            Change(VISIBLE, lambda minute: (200 * (minute - FROM + 1),), _from(30), SOURCE),
            Change(AGE, (1e5,), _from(30), SOURCE),
            Change(DELETED, (0,), _from(30), SOURCE),
        ),
        _of("QueueAge", "QueueAgeWarning", "NoProgress", "DepthOverBaseline"),
    ),
    Scenario(
        "a backlog that is worked off slowly",
        (
            Change(VISIBLE, (3000,), _from(30), SOURCE),
            Change(DELETED, (10,), _from(30), SOURCE),
            Change(IN_FLIGHT, (100_000,), _from(10), SOURCE),
        ),
        _of("DrainTime", "DepthOverBaseline", "InFlight"),
    ),
    Scenario(
        "a queue that grows beyond its baseline",
        (Change(VISIBLE, (150,), _from(20), SOURCE), Change(DELETED, (60,), _from(20), SOURCE)),
        _of("DepthOverBaseline"),
    ),
    Scenario(
        "a poison message, dead-lettered and discarded",
        (
            Change("retried", (1,), range(FROM, FROM + 3)),
            Change("records_failed", (1,), range(FROM, FROM + 4)),
            Change("dead_lettered", (1,), _from(1, FROM + 3)),
            Change(VISIBLE, (1,), _from(20, FROM + 3), DEAD),
            Change(IN_FLIGHT, (0,), _from(20, FROM + 3), DEAD),
            Change("stuck", (1,), _from(1, FROM + 2)),
        ),
        _of("DeadLetterArrival", "DeadLettersWaiting", "JobsStuck"),
    ),
    Scenario(
        "dead letters that are forgotten",
        (Change(AGE, (9 * DAYS,), _from(30), DEAD), Change(VISIBLE, (1,), _from(30), DEAD)),
        _of("DeadLetterAge", "DeadLetterAgeWarning", "DeadLettersWaiting", "DeadLetterArrival"),
    ),
    Scenario(
        "a storm of retries",
        (Change("retried", (20,), _from(20)), Change("records_failed", (20,), _from(20))),
        _of("Retries", "RecordFailures"),
    ),
    Scenario(
        "a storm of crashes",
        (
            Change("Errors", (20,), _from(20)),
            Change("Invocations", (60,), _from(20)),
            Change("visibility_expired", (20,), _from(20)),
            Change("claim_lost", (2,), _from(20)),
        ),
        _of("Errors", "ErrorsWarning", "AttemptsLost"),
    ),
    Scenario(
        "an outside system that does not answer",
        (
            Change("dependency_calls", (40,), _from(20)),
            Change("dependency_timeouts", (20,), _from(20)),
            Change("unknown", (1,), _from(5)),
        ),
        _of("DependencyFailures", "UnknownOutcomes"),
    ),
    Scenario(
        "an outside system whose breaker is open",
        (
            Change("dependency_calls", (1,), _from(20)),
            Change("dependency_unavailable", (1,), _from(20)),
            Change("turned_away_open", (40,), _from(20)),
        ),
        _of("DependencyFailures"),
    ),
    Scenario(
        "a lock that many want and one keeps",
        (Change("contended", (60,), _from(20)), Change("lock_held", (1e7,), _from(1))),
        _of("Contention", "LockHeld"),
    ),
    Scenario(
        "a producer that sends everything twice",
        (Change("duplicates", (60,), _from(20)),),
        _of("Duplicates"),
    ),
    Scenario(
        "Redis gone",
        (
            Change("invalidation_failed", (5,), _from(20)),
            Change("lease_lost", (3,), _from(20)),
            Change("cache_hit", (), _from(20)),
            Change("cache_miss", (200,), _from(20)),
            Change("cache_mismatch", (1,), _from(1, FROM + 20)),
        ),
        _of("InvalidationFailures", "AttemptsLost", "CacheMisses", "CacheMismatches"),
    ),
    Scenario(
        "jobs that take far longer than usual",
        (Change("duration", (1e6,) * 40, _from(20)), Change("Duration", (1e6,) * 40, _from(20))),
        _of("DurationJump", "NearTimeout"),
    ),
    Scenario(
        "too little concurrency",
        (Change("Throttles", (10,), _from(20)), Change("ConcurrentExecutions", (1000,), _from(20))),
        _of("Throttled", "Concurrency"),
    ),
    Scenario(
        "a sweeper that is dead",
        (Change("outbox_lag", (), _from(20)),),
        _of("OutboxLag"),
    ),
    Scenario(
        "a canary that takes too long",
        (Change("latency", (90_000,), _from(20)),),
        _of("Canary"),
    ),
    Scenario(
        "a canary that does not come back",
        (Change("latency", (), _from(20)),),
        _of("Canary"),
    ),
    Scenario(
        "an outbox that nobody empties",
        (
            Change("outbox_lag", (600_000,), _from(20)),
            Change("IteratorAge", (2 * 3600 * 1000,), _from(20)),
            Change(VISIBLE, (3,), _from(20), "GivenUp"),
            Change("parked", (1,), _from(1)),
            Change("job_lost", (1,), _from(1)),
        ),
        _of("OutboxLag", "LagWarning", "Lag", "GaveUp", "Parked", "JobsLost"),
    ),
    Scenario(
        "a table that is throttled",
        (
            Change("WriteThrottleEvents", (30,), _from(20)),
            Change("SystemErrors", (1,), _from(20)),
            Change("TransactionConflict", (20,), _from(20)),
        ),
        _of("Table", "TransactionConflicts"),
    ),
    Scenario(
        "a cache that is full and slow",
        (
            Change("ThrottledCmds", (50,), _from(20)),
            Change("ElastiCacheProcessingUnits", (2e6,), _from(20)),
            Change("BytesUsedForCache", (8e9,), _from(20)),
            Change("Evictions", (100,), _from(20)),
        ),
        _of("CacheThrottled", "CacheUnits", "CacheBytes", "CacheEvictions"),
    ),
    Scenario(
        "a front door that fails",
        (Change("5xx", (100,), _from(40)), Change("Latency", (4000,) * 100, _from(20))),
        _of(
            "ServerErrors",
            "Latency",
            "FastBurn",
            "FastBurnLong",
            "FastBurnShort",
            "SlowBurn",
            "SlowBurnLong",
            "SlowBurnShort",
        ),
        minutes=8 * HOUR,
    ),
)
