"""Calls of DynamoDB and exchanges with Redis for each job: counted, not timed."""

from __future__ import annotations

import contextlib
import uuid
from collections import Counter
from itertools import count
from typing import TYPE_CHECKING, Any

from redis import Redis

from benchmarks import product
from benchmarks.declared import Figure, Measure, Of, Sample, Store, Target
from benchmarks.peers import hand_wired
from shared.backends.aws import client
from shared.backends.redis.leases import RedisStore
from shared.clock import SystemClock
from tests.aws import Database
from tests.aws_calls import seeing
from tests.redis_calls import exchanges
from tests.world import Context

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from benchmarks.bench import Bench

JOBS = 10
BATCHES = 9
READS = frozenset({"GetItem", "BatchGetItem", "Query"})
PEER = "hand-wired"
TOGETHER = "The locks of a batch are taken in one exchange, and given back by as few as its commits end in."


def run(bench: Bench) -> Mapping[str, Sample]:
    """Count what a job alone and a batch of ten ask for, after one that opens the connections."""
    database = Database.create(product.THINGS)
    things = database.tables[product.THINGS.name]
    told = product.settings(bench.valkey_port, suffix=database.jobs_table.removeprefix("jobs-"))
    ours = product.on_stores(told)
    idempotency, dynamodb = f"idempotency-{uuid.uuid4().hex[:8]}", client("dynamodb")
    dynamodb.create_table(
        TableName=idempotency,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
    )
    wired = hand_wired.on_stores(dynamodb, Redis(port=bench.valkey_port), idempotency, things)
    names = count()

    def counted(handle: Callable[[Any, Any], Any], jobs: int) -> Counter[str]:
        asked: Counter[str] = Counter()
        event = product.batch(product.note_body(f"t{next(names)}") for _ in range(jobs))
        with counting(asked):
            answer = handle(event, Context())
        if answer["batchItemFailures"]:
            message = "a batch that does not complete is not counted"
            raise AssertionError(message)
        return asked

    found: dict[str, Counter[str]] = {}
    for name, handle in (("ours", ours.handle), ("peer", wired.handler)):
        counted(handle, JOBS)  # as many connections as there may be
        found[name] = counted(handle, 1)
        found[f"{name} together"] = counted(handle, JOBS)
    bench.progress(1)
    return {
        "dynamodb": _sample(found, "", "calls", 1),
        "dynamodb_batch": _sample(found, " together", "calls", JOBS),
        "redis": _sample(found, "", "exchanges", 1),
        "redis_batch": Sample(_together(bench), (found["peer together"]["exchanges"] / JOBS,) * BATCHES),
    }


def _together(bench: Bench) -> tuple[float, ...]:
    """Exchanges with Redis for each job of a batch whose commits take as long as DynamoDB's, and not as moto's do."""
    redis = RedisStore(product.valkey_connection(bench.valkey_port))
    consumer = product.in_process(product.Committing(SystemClock()), redis)
    asked = []
    for turn in range(1 + BATCHES):  # the first opens connections
        names = [f"together-{turn}-{uuid.uuid4().hex[:8]}" for _ in range(JOBS)]
        counted: Counter[str] = Counter()
        with counting(counted):
            consumer.handle(product.batch(map(product.note_body, names)), Context())
        asked.append(counted["exchanges"] / JOBS)
    return tuple(asked[1:])


def _sample(found: Mapping[str, Counter[str]], which: str, what: str, jobs: int) -> Sample:
    return Sample((found[f"ours{which}"][what] / jobs,), (found[f"peer{which}"][what] / jobs,))


@contextlib.contextmanager
def counting(asked: Counter[str]) -> Iterator[None]:
    """Count `calls` of DynamoDB that write, and `exchanges` with Redis, of all threads of this process."""

    def see(service: str, operation: str, _: dict[str, Any]) -> None:
        if service == "dynamodb" and operation not in READS:
            asked["calls"] += 1

    with seeing(see), exchanges(lambda _: asked.update(["exchanges"])):
        yield


def _at_most(name: str, what: str, bound: float) -> Figure:
    return Figure(name, what, "a job", PEER, Target(Of.OURS, at_most=bound), tolerance=0.0, remark=TOGETHER)


MEASURE = Measure(
    name="calls",
    title="Calls of DynamoDB and exchanges with Redis for each job",
    explanation=(
        "Counted at botocore's one method and at redis-py's one method that everything goes through, on moto and a real"
        " Valkey, for a successful job that writes one item under one lock and invalidates one tag. What a handler reads"
        " for itself is not counted, nor is what opens connections. A pipeline is one exchange. Who ends together depends on"
        " how long commits take: moto answers one after the other, so that the exchanges of a batch are counted where a"
        " commit takes 10 ms, as about DynamoDB's does."
    ),
    figures=(
        _at_most("dynamodb", "calls of DynamoDB, a job alone", 2),
        _at_most("dynamodb_batch", "calls of DynamoDB in a batch of ten", 2),
        _at_most("redis", "exchanges with Redis, a job alone", 2),
        _at_most("redis_batch", "exchanges with Redis in a batch of ten", 0.4),
    ),
    run=run,
    stores=frozenset({Store.VALKEY, Store.MOTO}),
)
