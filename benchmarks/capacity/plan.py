"""The plan for a rate: which settings carry it with headroom, what is to be asked of AWS, and what stays in the way."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from benchmarks.capacity import quotas
from benchmarks.capacity.deployment import Deployment, Pollers
from benchmarks.capacity.invocation import concurrency_for
from benchmarks.capacity.limits import INDEX_WRITES_OF_A_MESSAGE, limits_of, relay_seconds
from benchmarks.capacity.shape import Origin
from benchmarks.cost import SHORT
from functions.registry import WORKERS
from shared.gate import MOST_CALLS
from shared.rate import MOST_A_SECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.capacity.limits import Limit
    from benchmarks.capacity.shape import Shape

MOST_BATCHES_OF_A_SHARD = 10  # ParallelizationFactor
MOST_DOOR_REQUESTS = 10_000  # that infra/stage/identity.py takes
LEAST_CONCURRENCY = 2  # that a maximum concurrency takes
HEADROOM = 0.5  # of the rate, so that an outage's backlog is drained in twice its length


class Where(StrEnum):
    """Who changes a setting."""

    CDK = "cdk.json"
    CODE = "our code"
    AWS = "asked of AWS"
    OTHERS = "agreed with the outside system"


@dataclass(frozen=True, slots=True)
class Change:
    """A setting that is to be another."""

    setting: str
    now: str
    then: str
    where: Where


@dataclass(frozen=True, slots=True)
class Plan:
    """What carries a rate.

    Attributes:
        rate: jobs a second.
        wanted: jobs a second with headroom.
        deployment: with all changes made.
        changes: from what is declared.
        in_the_way: bounds below `wanted` that no setting moves far enough.
    """

    rate: float
    wanted: float
    deployment: Deployment
    changes: tuple[Change, ...]
    in_the_way: tuple[Limit, ...]


def plan(shape: Shape, declared: Deployment, rate: float, headroom: float = HEADROOM) -> Plan:
    """Change what is declared until it carries the rate, as far as that is possible. Nothing is made smaller."""
    wanted = rate * (1 + headroom)
    planned, changes = declared, []
    for step in _STEPS:
        for change, changed in step(shape, planned, wanted):
            changes.append(change)
            planned = changed
    left = tuple(limit for limit in limits_of(shape, planned) if limit.jobs < wanted)
    return Plan(rate, wanted, planned, tuple(changes), left)


def settings_of(made: Plan, shape: Shape, declared: Deployment) -> dict[str, dict[str, object]]:
    """What to write into a stage of cdk.json; empty where nothing there changes."""
    new, found = made.deployment, dict[str, dict[str, object]]()
    if new.max_concurrency is not None and new.max_concurrency != declared.max_concurrency:
        found["sizes"] = {shape.worker.name: {"max_concurrency": new.max_concurrency}}
    if new.door_requests != declared.door_requests:
        found["identity"] = {"requests_per_second": int(new.door_requests)}
    return found


def _invocations(shape: Shape, old: Deployment, wanted: float) -> Iterator[tuple[Change, Deployment]]:
    needed = math.ceil(concurrency_for(wanted, shape.time, old, old.batch_size))
    now = "none" if old.max_concurrency is None else str(old.max_concurrency)
    new = old
    if old.max_concurrency is not None and needed > old.max_concurrency:
        if needed <= quotas.HIGHEST_MAXIMUM.value:
            new = replace(old, max_concurrency=max(needed, LEAST_CONCURRENCY))
            yield Change(f'sizes["{shape.worker.name}"].max_concurrency', now, str(new.max_concurrency), Where.CDK), new
        else:
            new = replace(old, max_concurrency=None, pollers=_pollers(needed, wanted, old))
            mode = f"provisioned mode, {new.pollers.least} to {new.pollers.most} pollers" if new.pollers else now
            setting = "mode of the mapping (infra/constructs/mapping.py has none yet)"
            yield Change(setting, f"maximum concurrency {now}", mode, Where.CODE), new
    if new.reserved is not None and new.reserved < needed:
        now, new = str(new.reserved), replace(new, reserved=needed)
        yield Change(f'sizes["{shape.worker.name}"].reserved_concurrency', now, str(needed), Where.CDK), new
    others = sum(worker.max_concurrency for worker in WORKERS if worker.name != shape.worker.name)
    requests = wanted / old.batch_size / quotas.REQUESTS_EACH.value
    door = wanted * SHORT if shape.origin is Origin.FRONT_DOOR else 0
    account = _rounded(max(needed + door, requests) + others, 100)
    if account > new.account:
        now, new = f"{new.account:,}", replace(new, account=account)
        yield Change('Lambda quota "Concurrent executions"', now, f"{account:,}", Where.AWS), new


def _pollers(concurrency: float, wanted: float, old: Deployment) -> Pollers:
    """Pollers for so many invocations and polls; those that are always there carry the rate as far as AWS keeps any."""
    of_invocations = concurrency / quotas.POLLER_INVOCATIONS.value
    of_polls = wanted / (quotas.POLLER_POLLS.value * min(old.batch_size, quotas.RECEIVED_AT_ONCE.value))
    of_bytes = wanted * quotas.MESSAGE_BYTES.value / quotas.POLLER_BYTES.value
    needed = max(of_invocations, of_polls, of_bytes, quotas.LEAST_POLLERS.value)
    most = min(math.ceil(needed), int(quotas.MOST_POLLERS.value))
    return Pollers(min(most, int(quotas.MOST_MINIMUM_POLLERS.value)), most)


def _dependency(shape: Shape, old: Deployment, wanted: float) -> Iterator[tuple[Change, Deployment]]:
    if shape.dependency is None:
        return
    new, name = old, shape.dependency.name
    if new.call_rate is not None and new.call_rate < wanted:
        then = min(math.ceil(wanted), MOST_A_SECOND)
        now, new = f"{new.call_rate:,g} a second", replace(new, call_rate=then)
        yield Change(f'Dependency("{name}", rate=)', now, f"{then:,} a second", Where.OTHERS), new
    calls = math.ceil(wanted * shape.call)
    if new.calls_at_once is not None and new.calls_at_once < calls:
        then = min(calls, MOST_CALLS)
        now, new = str(new.calls_at_once), replace(new, calls_at_once=then)
        yield Change(f'Dependency("{name}", concurrency=)', now, f"{then:,}", Where.OTHERS), new


def _tables(shape: Shape, old: Deployment, wanted: float) -> Iterator[tuple[Change, Deployment]]:
    new = old
    writes = wanted * max(shape.jobs_writes, shape.items_writes, shape.outbox_writes)
    most = _rounded(max(writes, wanted * shape.items_reads), 1000)
    if most > new.table_units:
        now, new = f"{new.table_units:,.0f}", replace(new, table_units=most)
        yield Change('DynamoDB quota "Table-level write (and read) throughput"', now, f"{most:,}", Where.AWS), new
    if (warm := _rounded(writes, 1000)) > new.warm_writes:
        shards = (
            max(new.stream_shards, int(warm / quotas.PARTITION_WRITES.value))
            if shape.outbox_writes
            else new.stream_shards
        )
        now, new = f"{new.warm_writes:,.0f} write units", replace(new, warm_writes=warm, stream_shards=shards)
        yield Change("warm throughput of the tables, before the first peak", now, f"{warm:,}", Where.AWS), new
    keys = math.ceil(
        wanted * max(shape.unended_writes, INDEX_WRITES_OF_A_MESSAGE * shape.messages) / quotas.PARTITION_WRITES.value
    )
    if keys > new.index_keys:
        now, new = str(new.index_keys), replace(new, index_keys=keys)
        yield Change("SHARDS in shared/outbox.py", now, str(keys), Where.CODE), new


def _door(shape: Shape, old: Deployment, wanted: float) -> Iterator[tuple[Change, Deployment]]:
    if shape.origin is not Origin.FRONT_DOOR:
        return
    new, admitted = old, min(math.ceil(wanted), MOST_DOOR_REQUESTS)
    if new.door_requests < wanted:
        now, new = f"{new.door_requests:,g} a second", replace(new, door_requests=admitted)
        yield Change("identity.requests_per_second", now, f"{admitted:,} a second", Where.CDK), new
    if new.api_requests < wanted:
        now, new = f"{new.api_requests:,g} a second", replace(new, api_requests=math.ceil(wanted))
        then = f"{new.api_requests:,g} a second"
        yield Change('API Gateway quota "Throttle quota per account"', now, then, Where.AWS), new


def _relay(shape: Shape, old: Deployment, wanted: float) -> Iterator[tuple[Change, Deployment]]:
    if not shape.messages:
        return
    new = old
    at_once = math.ceil(wanted * shape.messages * relay_seconds(old) / old.stream_batch)
    if at_once > new.stream_shards * new.shard_batches:
        now = str(new.shard_batches)
        new = replace(new, shard_batches=min(math.ceil(at_once / new.stream_shards), MOST_BATCHES_OF_A_SHARD))
        setting = "ParallelizationFactor of the relay's mapping (infra/constructs/mapping.py leaves it out)"
        yield Change(setting, now, str(new.shard_batches), Where.CODE), new
    if at_once > new.stream_shards * new.shard_batches:
        now, new = str(new.stream_shards), replace(new, stream_shards=math.ceil(at_once / new.shard_batches))
        setting = "shards of the outbox's stream, by its table's warm throughput"
        yield Change(setting, now, f"{new.stream_shards} (of 1,000 write units each)", Where.AWS), new


def _cache(shape: Shape, old: Deployment, wanted: float) -> Iterator[tuple[Change, Deployment]]:
    units = _rounded(wanted * shape.exchanges * quotas.UNITS_OF_AN_EXCHANGE.value, 1000)
    if units > old.cache_units:
        new = replace(old, cache_units=units)
        setting = "least ECPU a second of the cache, an hour before the first peak"
        yield Change(setting, f"{old.cache_units:,.0f}", f"{units:,}", Where.AWS), new


def _rounded(value: float, to: int) -> int:
    """Up to a whole multiple."""
    return math.ceil(value / to) * to


_STEPS: tuple[Callable[[Shape, Deployment, float], Iterator[tuple[Change, Deployment]]], ...] = (
    _door,
    _invocations,
    _dependency,
    _tables,
    _relay,
    _cache,
)
