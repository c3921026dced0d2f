"""DynamoDB tables: job records and the outbox with their streams, and the tables of business items that jobs declare."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from constructs import Construct

from shared.backends.dynamodb.job_record_item import CREATED_AT, LISTED_FOR, LOOK_AT, UNENDED, UNFINISHED_OF
from shared.backends.dynamodb.outbox import LANES, PLACE, WAITING
from shared.backends.dynamodb.owned_jobs import BY_OWNER, UNFINISHED
from shared.backends.dynamodb.unended import INDEX
from shared.naming import camel

if TYPE_CHECKING:
    from aws_cdk import aws_kms as kms

    from infra.stage.settings import Stage
    from shared.table import Table

TTL = "ttl"


class Tables(Construct):
    """The tables of a stack. Business tables come into being when a worker first asks for them."""

    def __init__(self, scope: Construct, construct_id: str, *, stage: Stage, key: kms.IKey | None) -> None:
        super().__init__(scope, construct_id)
        self._stage = stage
        self._key = key
        self._business: dict[str, dynamodb.Table] = {}
        self.jobs = self._table("Jobs", key="id", stream=dynamodb.StreamViewType.NEW_IMAGE)
        self.outbox = self._table("Outbox", key="lane", sort_key="id", stream=dynamodb.StreamViewType.NEW_IMAGE)
        _index(self.jobs, INDEX, UNENDED, LOOK_AT)
        _index(self.jobs, BY_OWNER, LISTED_FOR, CREATED_AT)
        _index(self.jobs, UNFINISHED, UNFINISHED_OF, CREATED_AT)
        _index(self.outbox, WAITING, "pending", "due_at")
        self.outbox.add_local_secondary_index(
            index_name=LANES, sort_key=_string(PLACE), projection_type=dynamodb.ProjectionType.KEYS_ONLY
        )

    def business(self, table: Table) -> dynamodb.Table:
        """The table of that declaration."""
        if table.name not in self._business:
            self._business[table.name] = self._table(
                f"Items{camel(table.name)}", key=table.key, sort_key=table.sort_key
            )
        return self._business[table.name]

    def _table(
        self,
        construct_id: str,
        *,
        key: str,
        sort_key: str | None = None,
        stream: dynamodb.StreamViewType | None = None,
    ) -> dynamodb.Table:
        return dynamodb.Table(
            self,
            construct_id,
            partition_key=_string(key),
            sort_key=None if sort_key is None else _string(sort_key),
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            time_to_live_attribute=TTL,
            stream=stream,
            encryption=dynamodb.TableEncryption.CUSTOMER_MANAGED if self._key else dynamodb.TableEncryption.DEFAULT,
            encryption_key=self._key,
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            deletion_protection=self._stage.retain,
            removal_policy=RemovalPolicy.RETAIN if self._stage.retain else RemovalPolicy.DESTROY,
        )


def _index(table: dynamodb.Table, name: str, key: str, sort_key: str) -> None:
    """A sparse index: it holds the keys of those items alone that have both attributes."""
    table.add_global_secondary_index(
        index_name=name,
        partition_key=_string(key),
        sort_key=_string(sort_key),
        projection_type=dynamodb.ProjectionType.KEYS_ONLY,
    )


def _string(name: str) -> dynamodb.Attribute:
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.STRING)
