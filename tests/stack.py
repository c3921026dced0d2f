"""The whole stack in one process: moto over HTTP, the real Valkey, the provider's stand-in, our event source mapping."""

from __future__ import annotations

import contextlib
import json
import time
import uuid
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from functions import outbox_relay, part_counter, payments
from functions.registry import WORKERS
from local.invoking.event_source_mapping import EventSourceMapping
from shared.backends.aws import client
from shared.backends.sqs.attributes import of_strings
from shared.consumer import Consumer
from shared.naming import camel
from shared.parts import STATES
from shared.runtime import connect
from shared.settings import Settings
from tests.aws import CREDENTIALS, Database, create_queue
from tests.permissions.authority import acting
from tests.world import Context

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from local.outside.server import OutsideServer
    from local.stack.valkey import Valkey
    from shared.table import Table
    from shared.worker import Worker

PACE = 0.1
SHOWN = {"job_type", "idempotency_key", "status", "attempts", "not_before", "in_progress_expiration", "updated_at"}


class OverrunError(Exception):
    """An invocation whose handler did not come back in time; its batch does."""


def _end_invocation(status: int) -> None:
    """End the invocation where Lambda's process would end: this process is that of all tests.

    Its threads go on, as those of a worker do whose time was over unseen: leases and claims keep them harmless.

    Raises:
        OverrunError: always.
    """
    raise OverrunError(status)


@dataclass
class Stack:
    """A deployed stack, as far as the tests look at it."""

    settings: Settings
    database: Database
    sqs: Any
    provider: Any  # the outside system of its worker: its stand-in tells what happened there
    worker: Worker = payments.WORKER
    relayed: set[str] = field(default_factory=set)
    counted: set[tuple[str, str]] = field(default_factory=set)
    counts: bool = True  # whether somebody counts the parts of split jobs

    def __post_init__(self) -> None:
        self.runtime = runtime = connect(self.worker, self.settings)
        consumer = Consumer(runtime.worker, runtime, end_process=_end_invocation)
        timeout = max(runtime.worker.function_timeout, timedelta(seconds=30))  # a slow machine keeps no pace
        self.mapping = EventSourceMapping(
            self.sqs,
            self.settings.queues[self.worker.name],
            consumer.handle,
            lambda: Context(timeout),
            self.worker.batch_size,
        )
        self.relay = outbox_relay.connect(self.settings)
        self.counter = part_counter.connect(self.settings)

    def seed(self, **order: str) -> None:
        item = {"user_id": "user-1", "amount": "30.40", "currency": "EUR", "status": "pending", **order}
        wire: dict[str, Any] = {name: {"S": value} for name, value in item.items()}
        self.database.client.put_item(TableName=self.settings.tables["orders"], Item={**wire, "version": {"N": "1"}})

    def own(self, order: str, user: str) -> None:
        """Let an order be this user's."""
        self.database.client.update_item(
            TableName=self.settings.tables["orders"],
            Key={"order_id": {"S": order}},
            UpdateExpression="SET user_id = :user, version = if_not_exists(version, :one)",
            ExpressionAttributeValues={":user": {"S": user}, ":one": {"N": "1"}},
        )

    def send(self, body: str, attributes: Mapping[str, str] | None = None) -> None:
        self.sqs.send_message(
            QueueUrl=self.settings.queues[self.worker.name],
            MessageBody=body,
            MessageAttributes=of_strings(attributes or {}),
        )

    def run(self, *, patience: timedelta = timedelta(seconds=60)) -> None:
        """Poll and relay until nothing is left on the queue."""
        deadline = time.monotonic() + patience.total_seconds()
        while time.monotonic() < deadline:
            with self._acting(f"Worker{camel(self.worker.name)}ConsumerFunction"):
                polled = self.mapping.poll()
            relayed = self.relay_new() + (self.count_new() if self.counts else 0)
            if not polled and not relayed and self._is_empty():
                return
            if not polled:
                time.sleep(0.1)
        pytest.fail(f"the queue is not empty after {patience}: {self._left()}")

    def _left(self) -> str:
        """What has not ended, for whoever reads that the queue is not empty."""
        items = self.database.client.scan(TableName=self.settings.jobs_table, ConsistentRead=True)["Items"]
        jobs = [
            {name: next(iter(item[name].values())) for name in sorted(item) if name in SHOWN}
            for item in items
            if "status" in item and item["status"]["S"] in {"accepted", "running", "retrying"}
        ]
        names = ["All"]
        url = self.settings.queues[self.worker.name]
        queue = self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
        counts = {name: count for name, count in queue.items() if name.startswith("Approximate")}
        return f"{counts}; {jobs}; the mapping met {[repr(error) for error in self.mapping.errors[-3:]]}"

    def _acting(self, function: str) -> contextlib.AbstractContextManager[None]:
        """As that function of the product: what its role does not grant is told. A worker of the tests has no role."""
        return acting(function, self.settings) if self.worker in WORKERS else contextlib.nullcontext()

    def relay_new(self) -> int:
        """Give the relay what the stream would bring: each outbox item once."""
        items = self.database.client.scan(TableName=self.settings.outbox_table, ConsistentRead=True)["Items"]
        fresh = [item for item in items if item["id"]["S"] not in self.relayed]
        if fresh:
            records = [
                {"eventSource": "aws:dynamodb", "eventName": "INSERT", "dynamodb": {"NewImage": item}} for item in fresh
            ]
            with self._acting("OutboxRelayFunction"):
                self.relay.relay(outbox_relay.read_stream({"Records": records}, self.relay.clock.now()))
            self.relayed |= {item["id"]["S"] for item in fresh}
        return len(fresh)

    def count_new(self) -> int:
        """Give the part counter what the stream of the job records would bring: each end of a part once."""
        if not any(job.parts for job in self.worker.jobs):
            return 0
        ends = ended_parts(self.database.client, self.settings)
        fresh = [item for item in ends if (item["id"]["S"], item["status"]["S"]) not in self.counted]
        if fresh:
            with self._acting("PartCounterFunction"):
                self.counter.count(streamed(fresh))
            self.counted |= {(item["id"]["S"], item["status"]["S"]) for item in fresh}
        return len(fresh)

    def is_at_rest(self) -> bool:
        """Whether nothing is on the queue, nor on its way there."""
        items = self.database.client.scan(TableName=self.settings.outbox_table, ConsistentRead=True)["Items"]
        return self._is_empty() and all({"sent_at", "parked"} & item.keys() for item in items)

    def _is_empty(self) -> bool:
        names = [
            "ApproximateNumberOfMessages",
            "ApproximateNumberOfMessagesNotVisible",
            "ApproximateNumberOfMessagesDelayed",
        ]
        url = self.settings.queues[self.worker.name]
        for _ in range(2):  # moto counts one after the other: what becomes visible in between is in none of the counts
            counts = self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
            if any(int(counts[name]) for name in names):
                return False
        return True

    def order(self, order_id: str) -> dict[str, str]:
        answer = self.database.client.get_item(
            TableName=self.settings.tables["orders"], Key={"order_id": {"S": order_id}}, ConsistentRead=True
        )
        return {name: next(iter(value.values())) for name, value in answer["Item"].items()}

    def dead_letters(
        self, *, delete: Callable[[dict[str, Any]], bool] = lambda _: False
    ) -> list[tuple[str, dict[str, Any]]]:
        """Bodies and reasons; those are deleted whose reason `delete` chooses."""
        found = []
        url = self.settings.dead_letter_queues[self.worker.name]
        while messages := self.sqs.receive_message(
            QueueUrl=url, MessageAttributeNames=["All"], MaxNumberOfMessages=10, VisibilityTimeout=600
        ).get("Messages"):
            for message in messages:
                reason = json.loads(message["MessageAttributes"]["tahan.dead-letter"]["StringValue"])
                found.append((message["Body"], reason))
                if delete(reason):
                    self.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        return found


def ended_parts(dynamodb: Any, settings: Settings) -> list[dict[str, Any]]:
    """The job records of parts that have ended."""
    items: list[dict[str, Any]] = dynamodb.scan(TableName=settings.jobs_table, ConsistentRead=True)["Items"]
    ended = {status.value for status in STATES}
    return [item for item in items if "part_of" in item and item["status"]["S"] in ended]


def streamed(items: list[dict[str, Any]]) -> dict[str, Any]:
    """Changed items as a stream brings them."""
    return {
        "Records": [
            {"eventSource": "aws:dynamodb", "eventName": "MODIFY", "dynamodb": {"NewImage": item}} for item in items
        ]
    }


def new_stack(
    valkey: Valkey,
    provider: OutsideServer,
    *,
    visibility: int = 24,
    worker: Worker = payments.WORKER,
    tables: Iterable[Table] = (),
) -> Stack:
    """Tables (the worker's, and more) and queues on moto, this Valkey, this outside system."""
    sqs = client("sqs")
    queue, dead = create_queue(sqs, visibility=visibility, receives=125)
    database = Database.create(*dict.fromkeys([*(access.table for access in worker.accesses), *tables]))
    buckets = {reach.folder.bucket: f"{reach.folder.bucket}-{uuid.uuid4().hex[:8]}" for reach in worker.reaches}
    for bucket in buckets.values():
        client("s3").create_bucket(
            Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": CREDENTIALS["AWS_DEFAULT_REGION"]}
        )
    settings = Settings(
        jobs_table=database.jobs_table,
        outbox_table=database.outbox_table,
        tables=database.tables,
        buckets=buckets,
        queues={worker.name: queue},
        dead_letter_queues={worker.name: dead},
        routes={job.name: worker.name for job in worker.jobs if job.parts},
        endpoints={d.name: f"http://127.0.0.1:{provider.server_port}" for d in worker.dependencies},
        cache_host=valkey.host,
        cache_port=str(valkey.port),
        cache_tls=False,
        cache_cluster=False,
        pace=PACE,
    )
    return Stack(settings, database, sqs, provider, worker)
