"""Messages that the outbox relay sends, against sending one by one."""

from __future__ import annotations

import time
from functools import partial
from itertools import count
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from benchmarks.declared import Figure, Measure, Sample, Store, Target
from benchmarks.measures.front_door import empty, posted
from functions import outbox_relay
from shared.backends.aws import client
from shared.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from benchmarks.bench import Bench

BATCH = 100  # records of the stream in one invocation
PEER = "one by one: send, mark, next"


def run(bench: Bench) -> Mapping[str, Sample]:
    """Time invocations with full batches, by the wall and by the CPU of the process."""
    sqs, dynamodb = client("sqs"), client("dynamodb")
    url = sqs.create_queue(QueueName="inventory")["QueueUrl"]
    relay = outbox_relay.connect(Settings("jobs", "outbox", queues={"inventory": url}))
    numbers = count()

    def ours(event: dict[str, Any]) -> None:
        relay.relay(outbox_relay.read_stream(event, relay.clock.now()))
        relay.telemetry.flush()

    def peer(event: dict[str, Any]) -> None:
        for record in event["Records"]:
            item = record["dynamodb"]["NewImage"]
            sqs.send_message(QueueUrl=url, MessageBody=item["body"]["S"])
            dynamodb.update_item(
                TableName="outbox",
                Key={"lane": item["lane"], "id": item["id"]},
                UpdateExpression="SET sent_at = :now REMOVE pending",
                ExpressionAttributeValues={":now": {"S": "2026-01-01T00:00:00+00:00"}},
            )

    def rates(send: Callable[[dict[str, Any]], None]) -> tuple[float, float]:
        event = {"Records": [posted(next(numbers), "inventory") for _ in range(BATCH)]}
        begun = time.perf_counter(), time.process_time()
        send(event)
        ended = time.perf_counter(), time.process_time()
        empty(sqs, url)
        wall, cpu = (after - before for before, after in zip(begun, ended, strict=True))
        return BATCH / wall, BATCH / cpu

    found = bench.rounds({"ours": partial(rates, ours), "peer": partial(rates, peer)}, bench.number(20, 4))
    return {
        "wall": Sample.of(found["ours"], found["peer"], itemgetter(0)),
        "cpu": Sample.of(found["ours"], found["peer"], itemgetter(1)),
    }


MEASURE = Measure(
    name="relay",
    title="Messages that the outbox relay sends",
    explanation=(
        f"The relay gets {BATCH} records of the outbox's stream in one invocation, sends them ten in a call and marks each"
        " as sent, so that none is sent twice for another's failure; the other side sends and marks one after another. SQS"
        " is moto's server, DynamoDB answers at once."
    ),
    figures=(
        Figure(
            "wall",
            "messages sent",
            "messages a second",
            PEER,
            Target(at_least=1.0),
            more_is_better=True,
            tolerance=0.25,
        ),
        Figure("cpu", "messages sent", "messages a CPU second", PEER, Target(at_least=1.0), more_is_better=True),
    ),
    run=run,
    stores=frozenset({Store.MOTO, Store.STUB}),
)
