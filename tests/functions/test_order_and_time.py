"""On SQS and DynamoDB as moto has them: an ordered flow to a FIFO queue, and a job that recurs, from declaration to effect."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, replace
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from functions import outbox_relay, outbox_sweeper
from functions.outbox_sweeper import GRACE
from local.invoking.event_source_mapping import record_of
from shared.backends.aws import client
from shared.backends.memory.cache import MemoryCache
from shared.backends.memory.gates import MemoryGates
from shared.backends.memory.transport import MemoryTransport
from shared.backends.sqs.queue import SqsQueue
from shared.clock import SystemClock, random_token
from shared.consumer import Consumer
from shared.job import job
from shared.outbox import posting_of
from shared.payload import Payload
from shared.runtime import assemble
from shared.settings import Settings
from shared.table import Table
from shared.telemetry import Silent
from shared.worker import Worker
from tests.aws import Database
from tests.world import Context

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shared.unit_of_work import UnitOfWork

HEARD = Table("heard", key="id")


class Step(Payload):
    """A step of an order."""

    order: str
    number: int = 0


@job("told", timeout=timedelta(seconds=5), max_latency=timedelta(minutes=1), uses=(HEARD.read_write,))
def told(payload: Step, work: UnitOfWork) -> None:
    heard = work.read(HEARD, payload.order)
    numbers = [*(heard["numbers"] if heard is not None else ()), payload.number]  # type: ignore[misc]
    if heard is None:
        work.create(HEARD, id=payload.order, numbers=numbers)
    else:
        work.update(heard, numbers=numbers)


class Nothing(Payload):
    """Nothing to say."""


@job(
    "count",
    timeout=timedelta(seconds=5),
    max_latency=timedelta(minutes=1),
    uses=(HEARD.read_write,),
    cron="* * * * *",
)
def count(_: Nothing, work: UnitOfWork) -> None:
    counted = work.read(HEARD, "count")
    if counted is None:
        work.create(HEARD, id="count", times=1)
    else:
        work.update(counted, times=counted["times"] + 1)  # type: ignore[operator]


@dataclass
class House:
    """A worker, its queue, the outbox functions: as deployed, but for the stream."""

    worker: Worker

    def __post_init__(self) -> None:
        self.database = Database.create(HEARD)
        sqs = client("sqs")
        fifo = {"FifoQueue": "true"} if self.worker.fifo else {}
        name = f"{uuid.uuid4().hex}{'.fifo' if fifo else ''}"
        url = sqs.create_queue(QueueName=name, Attributes={**fifo, "VisibilityTimeout": "60"})["QueueUrl"]
        self.queue = SqsQueue(sqs, url)
        self.settings = Settings(
            jobs_table=self.database.jobs_table,
            outbox_table=self.database.outbox_table,
            queues={self.worker.name: url},
            routes={} if self.worker.fifo else {each.name: self.worker.name for each in self.worker.jobs},
            recurring={each.name: f"1 {each.cron}" for each in self.worker.jobs if each.cron},
        )
        clock = SystemClock()
        self.runtime = assemble(
            self.worker,
            records=self.database.records(clock),
            items=self.database.items,
            outbox=self.database.outbox,
            parts=self.database.parts(clock),
            leases=MemoryCache(clock),
            gates=MemoryGates(clock),
            queue=self.queue,
            transport=MemoryTransport(),
            telemetry=Silent(),
            clock=clock,
            random=Random(1),  # noqa: S311 - repeatable
            tokens=random_token,
        )

    def items(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.database.client.scan(
            TableName=self.settings.outbox_table, ConsistentRead=True
        )["Items"]
        return found

    def relay(self, *items: dict[str, Any]) -> None:
        """What the stream brings of them."""
        relay = outbox_relay.connect(self.settings)
        records = [
            {"eventSource": "aws:dynamodb", "eventName": "INSERT", "dynamodb": {"NewImage": item}} for item in items
        ]
        relay.relay(outbox_relay.read_stream({"Records": records}, relay.clock.now()))

    def consume(self) -> None:
        """Poll until nothing comes."""
        consumer = Consumer(self.worker, self.runtime)
        while messages := self.queue.client.receive_message(
            QueueUrl=self.queue.url, MaxNumberOfMessages=10, AttributeNames=["All"], MessageAttributeNames=["All"]
        ).get("Messages"):
            answer = consumer.handle(
                {"Records": [record_of(message, self.queue.url) for message in messages]}, Context()
            )
            assert answer == {"batchItemFailures": []}
            for message in messages:
                self.queue.client.delete_message(QueueUrl=self.queue.url, ReceiptHandle=message["ReceiptHandle"])

    def heard(self, name: str) -> dict[str, Any]:
        stored = self.database.items.read(HEARD, (name,))
        assert stored is not None
        return dict(stored.attributes)


@pytest.fixture
def in_order(aws_endpoint: str) -> Iterator[House]:
    house = House(Worker("tellers", jobs=(told,), fifo=True))
    yield house
    house.database.drop()


def test_i12_an_ordered_flow_arrives_in_order_at_a_fifo_queue_also_where_the_stream_missed_some(
    in_order: House,
) -> None:
    now = in_order.runtime.clock.now()
    for number in range(6):
        for order in ("a", "b"):
            message = told.message(Step(order=order, number=number), f"{order}/{number}")
            named = replace(message, job_id=f"{order}{number}")
            posting = posting_of(named, random_token(), "tellers", group=order, ordered=True)
            in_order.database.outbox.post(posting, now + timedelta(milliseconds=number))
    brought = [item for item in in_order.items() if json.loads(item["body"]["S"])["payload"]["number"] in {2, 5}]
    in_order.relay(*reversed(brought))
    in_order.consume()
    assert [in_order.heard(order)["numbers"] for order in ("a", "b")] == [list(range(6))] * 2
    in_order.relay(*in_order.items())  # the stream brings all of it after all
    in_order.consume()
    assert len(in_order.heard("a")["numbers"]) == 6
    assert all("pending" not in item and "place" not in item for item in in_order.items())


@pytest.fixture
def recurs(aws_endpoint: str) -> Iterator[House]:
    house = House(Worker("counters", jobs=(count,)))
    yield house
    house.database.drop()


def test_r1_1_a_job_that_recurs_runs_once_for_each_occurrence(recurs: House) -> None:
    rounds = outbox_sweeper.connect(recurs.settings)
    left = recurs.runtime.clock.now() + GRACE
    for _ in range(2):
        rounds.make(left)  # two at once, or the next before the first was relayed
    occurrences = recurs.items()
    assert len(occurrences) in {1, 2}  # the minute may have ended in between
    recurs.relay(*occurrences)
    recurs.consume()
    assert recurs.heard("count")["times"] == 1
    recurs.relay(*occurrences)  # sent once more
    recurs.consume()
    assert recurs.heard("count")["times"] == 1
