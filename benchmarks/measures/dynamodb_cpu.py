"""CPU of the calls of DynamoDB for each job, in the worker's process."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from itertools import count
from random import SystemRandom
from typing import TYPE_CHECKING

from aws_lambda_powertools.utilities.idempotency import DynamoDBPersistenceLayer, IdempotencyConfig, idempotent_function

from benchmarks import product
from benchmarks.bench import MICROSECONDS
from benchmarks.declared import Figure, Measure, Sample, Store, Target
from shared.backends.aws import client
from shared.backends.dynamodb.fences import DynamoDBFences
from shared.backends.dynamodb.items import DynamoDBItems
from shared.backends.dynamodb.job_record_layer import JobRecordLayer
from shared.backends.dynamodb.job_records import DynamoDBJobRecords
from shared.claim import Claim, Granted
from shared.clock import SystemClock, random_token
from shared.commit import Commit
from shared.item import Create
from shared.job_record import Hold, Status
from shared.tag import Tag

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from benchmarks.bench import Bench

JOBS = 50  # in a round
PEER = "Powertools' idempotent function, and its own put"


def run(bench: Bench) -> Mapping[str, Sample]:
    """Time what each side does with DynamoDB for one job, and its parts, by the process's CPU clock."""
    dynamodb = client("dynamodb")
    records, now = _records(dynamodb), datetime.now(UTC)
    names = count()
    write = Create(product.THINGS, ("a",), {"id": "a", "text": "x"})
    commit = Commit(Status.COMPLETED, '{"written":"x"}', (Tag("thing/a"),), (write,))

    def claim() -> None:
        assert isinstance(records.claim(_claim(next(names), now), now), Granted)  # noqa: S101 - what is measured

    def ours() -> None:
        asked = _claim(next(names), now)
        records.claim(asked, now)
        records.commit(Hold(asked.record, asked.token), commit, now)

    def put() -> None:
        dynamodb.put_item(TableName="things", Item={"id": {"S": "a"}, "text": {"S": "x"}})

    layer = DynamoDBPersistenceLayer("jobs", boto3_client=dynamodb)
    config = IdempotencyConfig(event_key_jmespath="key")
    process = idempotent_function(data_keyword_argument="job", persistence_store=layer, config=config)(
        lambda job: (put(), {"written": job["key"]})[1]  # type: ignore[func-returns-value]
    )
    guard = idempotent_function(data_keyword_argument="job", persistence_store=layer, config=config)(lambda job: job)

    def spent(function: Callable[[], object]) -> Callable[[], float]:
        def one_round() -> float:
            begun = time.process_time()
            for _ in range(JOBS):
                function()
            return (time.process_time() - begun) * MICROSECONDS / JOBS

        return one_round

    sides = {
        "ours": spent(ours),
        "claim": spent(claim),
        "peer": spent(lambda: process(job={"key": str(next(names))})),
        "guard": spent(lambda: guard(job={"key": str(next(names))})),
        "put": spent(put),
    }
    found = bench.rounds(sides, bench.number(40, 8))
    commits = tuple(whole - part for whole, part in zip(found["ours"], found["claim"], strict=True))
    return {
        "job": Sample(found["ours"], found["peer"]),
        "claim": Sample(found["claim"], found["put"]),
        "commit": Sample(commits, found["put"]),
        "beside_guard": Sample(found["ours"], found["guard"]),
    }


def _records(dynamodb: Any) -> DynamoDBJobRecords:  # noqa: ANN401 - boto3 builds the class
    clock, random = SystemClock(), SystemRandom()
    layer = JobRecordLayer(dynamodb, "jobs", DynamoDBItems(dynamodb, {product.THINGS.name: "things"}), "outbox")
    return DynamoDBJobRecords(layer, DynamoDBFences(dynamodb, "jobs", clock, random), clock, random)


def _claim(number: int, now: datetime) -> Claim:
    return Claim(
        record=f"{number:064}",
        token=random_token(),
        owner="system",
        job_type="note",
        idempotency_key=f"k{number}",
        fingerprint=f"1:{number:064}",
        payload='{"text":"x","thing":"a","wait":0}',
        version=1,
        until=now + timedelta(seconds=60),
        max_attempts=3,
        death=0,
    )


MEASURE = Measure(
    name="dynamodb_cpu",
    title="CPU of the DynamoDB path for each job, in the worker's process",
    explanation=(
        "CPU of the process that calls: our claim and commit (one conditional update, one transaction of record and item)"
        " against Powertools' put and update around the handler's own put of its item. The server is another process that"
        " answers at once, so that the client's side alone is seen: building the request, checking it against the model,"
        " signing, HTTP, reading the answer. Parts are set beside one plain put_item of the same client."
    ),
    figures=(
        Figure("job", "all calls of one job that writes one item", "µs", PEER, Target(at_most=1.0)),
        Figure("claim", "our claim alone", "µs", "one plain put_item", yardstick=True),
        Figure("commit", "our commit alone", "µs", "one plain put_item", yardstick=True),
        Figure(
            "beside_guard", "all our calls", "µs", "Powertools' put and update alone, no item written", yardstick=True
        ),
    ),
    run=run,
    stores=frozenset({Store.STUB}),
)
