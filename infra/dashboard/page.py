"""What the dashboard shows: is work flowing, what fails, what waits; then what that rests on, and what it costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from infra.alarms.alarm import Severity
from infra.alarms.metric import (
    IN_FLIGHT,
    OLDEST,
    SENT,
    VISIBLE,
    Expression,
    Metric,
    of_api,
    of_cache,
    of_function,
    of_queue,
    own,
    total,
)
from infra.dashboard.cost import Billed, dynamodb_dollars, lambda_dollars, sqs_dollars
from infra.dashboard.widget import MOST_ALARMS, Alarms, Graph, Heading, Widget
from shared.metrics import Writer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    Lines = Mapping[str, Metric | Expression]


@dataclass(frozen=True, slots=True)
class ShownWorker:
    """A worker and what its resources are called."""

    name: str
    source: str
    dead_letters: str
    function: str
    memory: int
    calls_out: bool


@dataclass(frozen=True, slots=True)
class Shown:
    """Whatever the dashboard shows.

    Attributes:
        functions: those that belong to no worker, by what they are called on the dashboard.
        readers: of these, those that read a stream.
        api: the front door's, where there is one.
        alarms: their ARNs.
    """

    workers: Sequence[ShownWorker]
    functions: Mapping[str, Billed]
    readers: Sequence[str]
    tables: Sequence[str]
    cache: str
    processor: str
    api: str | None
    alarms: Sequence[tuple[Severity, str]]


def widgets(shown: Shown) -> list[Widget]:
    """All widgets, in order."""
    return [
        *_alarms(shown.alarms),
        Heading("Is work flowing?"),
        *_flow(shown),
        Heading("What fails?"),
        *_failing(shown),
        Heading("What waits?"),
        *_waiting(shown),
        *_dependencies(shown.workers),
        Heading("Cache and locks"),
        *_cache(shown),
        Heading("What it costs"),
        *_cost(shown),
    ]


def _alarms(alarms: Iterable[tuple[Severity, str]]) -> list[Widget]:
    found: list[Widget] = []
    for severity, title in ((Severity.PAGE, "Alarms that page"), (Severity.WARN, "Alarms that warn")):
        arns = [arn for each, arn in alarms if each is severity]
        parts = [arns[start : start + MOST_ALARMS] for start in range(0, len(arns), MOST_ALARMS)]
        found += [Alarms(title, part) for part in parts]
    return found


def _flow(shown: Shown) -> list[Widget]:
    workers = shown.workers
    coming: dict[str, Metric | Expression] = {w.name: of_queue(w.source, SENT, "Sum") for w in workers}
    if shown.api is not None:
        coming["accepted over HTTP"] = total({"new": own(Writer.FRONT_DOOR, "accepted")})
    return [
        Graph("Coming in, a minute", coming),
        Graph("Completed, a minute", _each(workers, "succeeded")),
        Graph("From sending to completion, 95th percentile", _each(workers, "latency", "p95"), "ms"),
    ]


def _failing(shown: Shown) -> list[Widget]:
    lost = ("visibility_expired", "claim_lost", "lease_lost")
    errors: dict[str, Metric | Expression] = {w.name: of_function(w.function, "Errors") for w in shown.workers}
    errors |= {name: of_function(each.name, "Errors") for name, each in shown.functions.items()}
    found: list[Widget] = [
        Graph("Records of batches that fail", _each(shown.workers, "records_failed")),
        Graph("Retried", _each(shown.workers, "retried")),
        Graph("Dead-lettered", _each(shown.workers, "dead_lettered")),
        Graph("Attempts that crashed, ran out of time or were overtaken", _sums(shown.workers, lost)),
        Graph("Invocations that failed", errors),
    ]
    if shown.api is not None:
        door = {name: own(Writer.FRONT_DOOR, name) for name in ("refused", "request_failed", "shed", "rate_exceeded")}
        found.append(Graph("Front door: requests turned away", {**door, "5xx": of_api(shown.api, "5xx")}))
    return found


def _waiting(shown: Shown) -> list[Widget]:
    def of(queue: str, name: str) -> Lines:
        return {w.name: of_queue(getattr(w, queue), name) for w in shown.workers}

    lags: Lines = {
        "oldest message of the outbox": own(Writer.SWEEPER, "outbox_lag", "Maximum"),
        **{name: of_function(shown.functions[name].name, "IteratorAge", "Maximum") for name in shown.readers},
    }
    dead = {w.name: total(_both(w.dead_letters)) for w in shown.workers}
    return [
        Graph("Messages that wait", of("source", VISIBLE)),
        Graph("Age of the oldest message", of("source", OLDEST), "s"),
        Graph("Messages in flight", of("source", IN_FLIGHT)),
        Graph("Dead letters, being read or not", dead),
        Graph("Lag of the outbox and of the streams", lags, "ms"),
        Graph("Postponed, a minute", _each(shown.workers, "postponed")),
    ]


def _dependencies(workers: Sequence[ShownWorker]) -> list[Widget]:
    calling = [worker for worker in workers if worker.calls_out]
    if not calling:
        return []
    return [
        Heading("Outside systems"),
        Graph("Calls", _each(calling, "dependency_calls")),
        Graph("Calls that failed", _sums(calling, ("dependency_timeouts", "dependency_unavailable"))),
        Graph("Calls not made: breaker open, rate or retries used up", _sums(calling, _TURNED_AWAY)),
    ]


_TURNED_AWAY = ("turned_away_open", "turned_away_rate", "turned_away_concurrency", "turned_away_retries")


def _cache(shown: Shown) -> list[Widget]:
    reads = {name: own(Writer.FRONT_DOOR, f"cache_{name}") for name in ("hit", "miss", "stale_served", "bypassed")}
    cache: Lines = {
        "processing units": of_cache(shown.cache, "ElastiCacheProcessingUnits"),
        "throttled commands": of_cache(shown.cache, "ThrottledCmds"),
    }
    locks = {
        "wait for a lock": _over(shown.workers, "contended"),
        "invalidations that failed": _over(shown.workers, "invalidation_failed"),
        "no Redis for a lease": _over(shown.workers, "lease_unavailable"),
    }
    found: list[Widget] = [Graph("What the cache does", cache), Graph("Locks and invalidations", locks)]
    return found if shown.api is None else [Graph("Reads through the cache", reads), *found]


def _cost(shown: Shown) -> list[Widget]:
    mine = {worker.name: [Billed(worker.function, worker.memory)] for worker in shown.workers}
    rest = list(shown.functions.values())
    functions = [each for some in mine.values() for each in some] + rest
    queues = [queue for worker in shown.workers for queue in (worker.source, worker.dead_letters)]
    by_service = {
        "Lambda": lambda_dollars(functions, shown.processor),
        "SQS": sqs_dollars(queues),
        "DynamoDB": dynamodb_dollars(shown.tables),
    }
    invocations = {w.name: of_function(w.function, "Invocations") for w in shown.workers}
    invocations |= {name: of_function(each.name, "Invocations") for name, each in shown.functions.items()}
    by_worker = {name: lambda_dollars(some, shown.processor) for name, some in {**mine, "the others": rest}.items()}
    return [
        Graph("Estimated, by service", by_service, "US dollars an hour"),
        Graph("Estimated for Lambda, by worker", by_worker, "US dollars an hour"),
        Graph("Invocations, a minute", invocations),
    ]


def _each(workers: Iterable[ShownWorker], metric: str, statistic: str = "Sum") -> Lines:
    return {worker.name: own(worker.name, metric, statistic) for worker in workers}


def _sums(workers: Iterable[ShownWorker], metrics: Iterable[str]) -> Lines:
    return {worker.name: total({name: own(worker.name, name) for name in metrics}) for worker in workers}


def _over(workers: Sequence[ShownWorker], metric: str) -> Expression:
    return total({f"w{place}": own(worker.name, metric) for place, worker in enumerate(workers)})


def _both(queue: str) -> dict[str, Metric]:
    return {"visible": of_queue(queue, VISIBLE), "inflight": of_queue(queue, IN_FLIGHT)}
