"""Everything that bounds the jobs a second of a deployed worker, each with its name and the setting that moves it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from benchmarks.capacity import quotas
from benchmarks.capacity.invocation import cycle_seconds, jobs_of_a_slot
from benchmarks.capacity.shape import Origin
from benchmarks.cost import SHORT
from shared.gate import MOST_CALLS
from shared.naming import camel
from shared.rate import MOST_A_SECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.capacity.deployment import Deployment
    from benchmarks.capacity.shape import Shape

NO_LIMIT = math.inf
INDEX_WRITES_OF_A_MESSAGE = 2 * quotas.INDEX_WRITE.value  # it enters the index of waiting messages, and leaves it


class Kind(StrEnum):
    """What a limit does to jobs while more of them come."""

    DOOR = "door"  # they are refused, and told to come again
    BEFORE = "before"  # they are accepted, and wait for the relay
    CONCURRENCY = "concurrency"  # they wait on the queue for an invocation
    RATE = "rate"  # they wait in their invocation
    BEHIND = "behind"  # they end; what they send waits behind them


@dataclass(frozen=True, slots=True)
class Limit:
    """A bound.

    Attributes:
        name: what is bound.
        kind: what it does.
        jobs: a second, once everything has grown.
        setting: what moves it: a setting of ours, or a quota of AWS.
        first: jobs a second before anything has grown.
        doubles: seconds in which it doubles under load; 0 for what does not grow.
        burst: seconds of rest whose jobs it lets through at once. AWS meters by the second.
    """

    name: str
    kind: Kind
    jobs: float
    setting: str
    first: float = NO_LIMIT
    doubles: float = 0
    burst: float = 1.0

    def after(self, seconds: float) -> float:
        """Jobs a second, after so many seconds of load."""
        if not self.doubles or self.first >= self.jobs:
            return self.jobs
        return min(self.jobs, self.first * 2 ** min(seconds / self.doubles, 64))


def limits_of(shape: Shape, deployment: Deployment) -> list[Limit]:
    """All bounds of a deployed worker, the lowest first; each is alone, as if the others were moved."""
    found = [limit for part in _PARTS for limit in part(shape, deployment) if limit.jobs < NO_LIMIT]
    return sorted(found, key=lambda limit: limit.jobs)


def bottleneck(shape: Shape, deployment: Deployment) -> Limit:
    """The lowest bound."""
    return limits_of(shape, deployment)[0]


def _of_invocations(shape: Shape, deployment: Deployment) -> Iterator[Limit]:
    name = shape.worker.name
    of_a_slot = jobs_of_a_slot(shape.time, deployment, deployment.batch_size)

    def limit(title: str, concurrency: float, setting: str) -> Limit:
        return Limit(title, Kind.CONCURRENCY, concurrency * of_a_slot, setting)

    if deployment.pollers is not None:
        of_pollers = deployment.pollers.most
        yield limit(
            "provisioned pollers",
            of_pollers * quotas.POLLER_INVOCATIONS.value,
            "MaximumPollers of the mapping, up to 2,000",
        )
        polls = min(
            of_pollers * quotas.POLLER_POLLS.value * min(deployment.batch_size, quotas.RECEIVED_AT_ONCE.value),
            of_pollers * quotas.POLLER_BYTES.value / quotas.MESSAGE_BYTES.value,
        )
        yield Limit(
            "polls of provisioned pollers", Kind.CONCURRENCY, polls, "MaximumPollers of the mapping, up to 2,000"
        )
    elif deployment.max_concurrency is not None:
        top = deployment.max_concurrency >= quotas.HIGHEST_MAXIMUM.value
        more = "1,000 is the most; beyond it the mapping's provisioned mode, which infra/constructs/mapping.py has not"
        yield limit(
            "maximum concurrency of the mapping",
            deployment.max_concurrency,
            more if top else f'sizes["{name}"].max_concurrency in cdk.json, up to 1,000',
        )
    else:
        yield limit(
            "scaling of the mapping", quotas.MOST_INVOCATIONS.value, "asked of AWS support, or provisioned mode"
        )
    if deployment.reserved is not None:
        yield limit("reserved concurrency", deployment.reserved, f'sizes["{name}"].reserved_concurrency in cdk.json')
    yield limit("concurrency of the account", deployment.account, 'Lambda quota "Concurrent executions"')
    requests = deployment.account * quotas.REQUESTS_EACH.value * deployment.batch_size
    yield Limit(
        "requests of the account", Kind.CONCURRENCY, requests, 'Lambda quota "Concurrent executions", or batch_size'
    )
    # What runs is in flight, and so is what failed until its retry; by Little's law the rate is their number over their time.
    retry = shape.worker.jobs[0].retry.base.total_seconds()
    held = cycle_seconds(shape.time, deployment, deployment.batch_size) + quotas.POSTPONED_SHARE.value * retry
    yield Limit(
        "messages in flight",
        Kind.CONCURRENCY,
        quotas.IN_FLIGHT.value / held,
        'SQS quota "in flight messages" by a support request, or a shorter job',
    )


def _of_the_dependency(shape: Shape, deployment: Deployment) -> Iterator[Limit]:
    if shape.dependency is None:
        return
    name = shape.dependency.name
    if deployment.call_rate is not None:
        allowed, by_contract = shape.dependency.rate, f'Dependency("{name}", rate=), by its contract'
        yield Limit(
            "rate of the outside system",
            Kind.RATE,
            deployment.call_rate,
            by_contract if deployment.call_rate < MOST_A_SECOND else "none: shared/rate.py takes no higher rate",
            burst=(0 if allowed is None else allowed.burst - 1) / deployment.call_rate,
        )
    if deployment.calls_at_once is not None and shape.call:
        calls = deployment.calls_at_once / shape.call
        by_contract = f'Dependency("{name}", concurrency=), by its contract'
        setting = by_contract if deployment.calls_at_once < MOST_CALLS else "none: shared/gate.py takes no more calls"
        yield Limit("calls at one time", Kind.RATE, calls, setting, burst=shape.call)
    yield Limit(
        "hash slot of the dependency's gate",
        Kind.RATE,
        quotas.SLOT_UNITS.value / (shape.gate_exchanges * quotas.UNITS_OF_AN_EXCHANGE.value),
        "none: one gate is one hash slot; two dependencies of half the rate each are two",
    )


def _table(title: str, units: float, most: float, first: float) -> Limit:
    setting = 'DynamoDB quota "Table-level throughput"; before a peak the table\'s warm throughput'
    if not units:
        return Limit(title, Kind.RATE, NO_LIMIT, setting)
    return Limit(title, Kind.RATE, most / units, setting, first=first / units, doubles=quotas.TABLE_DOUBLES.value)


def _of_tables(shape: Shape, deployment: Deployment) -> Iterator[Limit]:
    most, warm = deployment.table_units, deployment.warm_writes
    yield _table("writes of the job records", shape.jobs_writes, most, warm)
    items = ", ".join(f"Items{camel(access.table.name)}" for access in shape.worker.accesses) or "none"
    yield _table(f"writes of business items ({items})", shape.items_writes, most, warm)
    yield _table("writes of the outbox", shape.outbox_writes, most, warm)
    reads = quotas.NEW_TABLE_READS.value / quotas.NEW_TABLE_WRITES.value * warm
    yield _table(f"reads of business items ({items})", shape.items_reads, most, reads)
    keys = deployment.index_keys * quotas.PARTITION_WRITES.value
    setting = "SHARDS in shared/outbox.py"
    if shape.unended_writes:
        yield Limit("index of unended jobs", Kind.RATE, keys / shape.unended_writes, setting)
    if shape.messages:
        yield Limit(
            "index of waiting messages", Kind.RATE, keys / (INDEX_WRITES_OF_A_MESSAGE * shape.messages), setting
        )
    if deployment.hottest:
        of_one = min(
            quotas.PARTITION_WRITES.value / max(shape.items_writes, 1),
            quotas.PARTITION_READS.value / max(shape.items_reads, 1),
        )
        yield Limit("partition of one item", Kind.RATE, of_one / deployment.hottest, "none: fewer jobs for one item")
        if shape.worker.jobs[0].lock is not None:
            one = 1 / shape.time.mean
            yield Limit(
                "lock on one item", Kind.RATE, one / deployment.hottest, "none: jobs for one lock key run one by one"
            )


def _of_the_cache(shape: Shape, deployment: Deployment) -> Iterator[Limit]:
    units = shape.exchanges * quotas.UNITS_OF_AN_EXCHANGE.value
    if units:
        yield Limit(
            "requests of Valkey",
            Kind.RATE,
            quotas.MOST_CACHE_UNITS.value / units,
            "the cache's least ECPU a second, raised an hour before a peak",
            first=deployment.cache_units / units,
            doubles=quotas.CACHE_DOUBLES.value,
        )


def relay_seconds(deployment: Deployment) -> float:
    """Seconds of the relay's full batch: it sends ten messages a call, and then marks one after the other."""
    sends = math.ceil(deployment.stream_batch / quotas.RECEIVED_AT_ONCE.value)
    return quotas.POLL.value + sends * quotas.SENT_EACH.value + deployment.stream_batch * quotas.MARKED_EACH.value


def _of_the_door(shape: Shape, deployment: Deployment) -> Iterator[Limit]:
    if shape.origin is not Origin.FRONT_DOOR:
        return
    setting = "identity.requests_per_second in cdk.json, of all job types together, up to 10,000"
    yield Limit("requests of the front door", Kind.DOOR, deployment.door_requests, setting)
    setting = 'API Gateway quota "Throttle quota per account"'
    yield Limit("requests of API Gateway", Kind.DOOR, deployment.api_requests, setting)
    setting = 'Lambda quota "Concurrent executions"'
    yield Limit("concurrency of the front door", Kind.DOOR, deployment.account / SHORT, setting)


def _of_the_relay(shape: Shape, deployment: Deployment) -> Iterator[Limit]:
    if shape.messages:
        side_by_side = deployment.stream_shards * deployment.shard_batches
        sent = side_by_side * deployment.stream_batch / relay_seconds(deployment)
        yield Limit(
            "outbox relay",
            Kind.BEFORE if shape.origin is Origin.FRONT_DOOR else Kind.BEHIND,
            sent / shape.messages,
            "ParallelizationFactor of the stream's mapping, which infra/constructs/mapping.py leaves at 1",
        )


_PARTS: tuple[Callable[[Shape, Deployment], Iterator[Limit]], ...] = (
    _of_the_door,
    _of_invocations,
    _of_the_dependency,
    _of_tables,
    _of_the_cache,
    _of_the_relay,
)
