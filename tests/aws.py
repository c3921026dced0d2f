"""Tables and queues on moto's server, made fresh for a test and the way infra makes them."""

from __future__ import annotations

import contextlib
import uuid
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from shared.backends.aws import client
from shared.backends.dynamodb.acceptances import DynamoDBAcceptances
from shared.backends.dynamodb.fences import DynamoDBFences
from shared.backends.dynamodb.items import DynamoDBItems
from shared.backends.dynamodb.job_record_item import CREATED_AT, LISTED_FOR, LOOK_AT, UNENDED, UNFINISHED_OF
from shared.backends.dynamodb.job_record_layer import JobRecordLayer
from shared.backends.dynamodb.job_records import DynamoDBJobRecords
from shared.backends.dynamodb.operator_records import DynamoDBOperatorRecords
from shared.backends.dynamodb.outbox import DynamoDBOutbox
from shared.backends.dynamodb.owned_jobs import BY_OWNER, UNFINISHED, DynamoDBOwnedJobs
from shared.backends.dynamodb.parts import DynamoDBParts

if TYPE_CHECKING:
    from shared.clock import Clock
    from shared.table import Table

CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_DEFAULT_REGION": "eu-central-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}


@dataclass
class Database:
    """DynamoDB tables, and the stores over them."""

    client: Any
    jobs_table: str
    outbox_table: str
    tables: dict[str, str]

    @classmethod
    def create(cls, *tables: Table) -> Database:
        """Make the tables."""
        dynamodb = client("dynamodb")
        suffix = uuid.uuid4().hex[:8]
        names = {table.name: f"{table.name}-{suffix}" for table in tables}
        for table in tables:
            keys = [table.key] if table.sort_key is None else [table.key, table.sort_key]
            _create(dynamodb, names[table.name], keys)
        lists = {
            "unended": [UNENDED, LOOK_AT],
            BY_OWNER: [LISTED_FOR, CREATED_AT],
            UNFINISHED: [UNFINISHED_OF, CREATED_AT],
        }
        _create(dynamodb, f"jobs-{suffix}", ["id"], **lists)
        _create(dynamodb, f"outbox-{suffix}", ["lane", "id"], waiting=["pending", "due_at"], lanes=["lane", "place"])
        return cls(dynamodb, f"jobs-{suffix}", f"outbox-{suffix}", names)

    def drop(self) -> None:
        """Remove the tables, for runs that make many."""
        for name in (self.jobs_table, self.outbox_table, *self.tables.values()):
            self.client.delete_table(TableName=name)

    @property
    def items(self) -> DynamoDBItems:
        return DynamoDBItems(self.client, self.tables)

    @property
    def outbox(self) -> DynamoDBOutbox:
        return DynamoDBOutbox(self.client, self.outbox_table)

    def acceptances(self, clock: Clock) -> DynamoDBAcceptances:
        return DynamoDBAcceptances(self.client, self.jobs_table, self.outbox_table, clock, Random(2))  # noqa: S311 - repeatable

    def owned(self, clock: Clock) -> DynamoDBOwnedJobs:
        return DynamoDBOwnedJobs(self.client, self.jobs_table, clock, Random(3))  # noqa: S311 - repeatable

    def operator(self, clock: Clock) -> DynamoDBOperatorRecords:
        return DynamoDBOperatorRecords(self.client, self.jobs_table, clock, Random(4))  # noqa: S311 - repeatable

    def parts(self, clock: Clock) -> DynamoDBParts:
        return DynamoDBParts(self.client, self.jobs_table, self.outbox_table, clock, Random(5))  # noqa: S311 - repeatable

    def records(self, clock: Clock) -> DynamoDBJobRecords:
        layer = JobRecordLayer(self.client, self.jobs_table, self.items, self.outbox_table)
        random = Random(1)  # noqa: S311 - repeatable
        return DynamoDBJobRecords(layer, DynamoDBFences(self.client, self.jobs_table, clock, random), clock, random)


def _create(dynamodb: Any, name: str, keys: list[str], **indexes: list[str]) -> None:
    attributes = {*keys, *(key for index in indexes.values() for key in index)}
    more: dict[str, Any] = {}
    for index, names in indexes.items():
        kind = "LocalSecondaryIndexes" if names[0] == keys[0] else "GlobalSecondaryIndexes"
        more.setdefault(kind, []).append(
            {"IndexName": index, "KeySchema": _schema(names), "Projection": {"ProjectionType": "KEYS_ONLY"}}
        )
    with contextlib.suppress(dynamodb.exceptions.ResourceInUseException):  # a busy machine's reply came too late
        dynamodb.create_table(
            TableName=name,
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key in sorted(attributes)],
            KeySchema=_schema(keys),
            **more,
        )


def _schema(keys: list[str]) -> list[dict[str, str]]:
    return [{"AttributeName": key, "KeyType": kind} for key, kind in zip(keys, ("HASH", "RANGE"), strict=False)]


def create_queue(sqs: Any, *, visibility: int = 30, receives: int = 10) -> tuple[str, str]:
    """Make a queue with its dead-letter queue; give both URLs."""
    name = uuid.uuid4().hex[:8]
    dead = sqs.create_queue(QueueName=f"dead-{name}")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    policy = f'{{"deadLetterTargetArn":"{arn}","maxReceiveCount":"{receives}"}}'
    attributes = {"VisibilityTimeout": str(visibility), "RedrivePolicy": policy}
    return sqs.create_queue(QueueName=f"source-{name}", Attributes=attributes)["QueueUrl"], dead
