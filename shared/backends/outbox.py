"""The outbox table in DynamoDB: what an item looks like, and marking it sent."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from shared.backends.aws import translated
from shared.outbox import KEPT, Posting


def write_posting(posting: Posting, now: datetime) -> dict[str, Any]:
    """The item of a posting."""
    return {
        "id": {"S": posting.id},
        "worker": {"S": posting.worker},
        "body": {"S": posting.body},
        "delay": {"N": str(int(posting.delay.total_seconds()))},
        "created_at": {"S": now.isoformat()},
        **({"group": {"S": posting.group}} if posting.group is not None else {}),
        **({"attributes": {"M": {n: {"S": v} for n, v in posting.attributes.items()}}} if posting.attributes else {}),
    }


def read_posting(item: dict[str, Any]) -> Posting:
    """A posting from its item."""
    return Posting(
        id=item["id"]["S"],
        worker=item["worker"]["S"],
        body=item["body"]["S"],
        delay=timedelta(seconds=int(item["delay"]["N"])),
        group=item["group"]["S"] if "group" in item else None,
        attributes={name: value["S"] for name, value in item.get("attributes", {}).get("M", {}).items()},
    )


@dataclass(frozen=True, slots=True)
class DynamoDBOutbox:
    """The outbox table."""

    client: Any
    table: str

    def post(self, posting: Posting, now: datetime) -> None:
        """Have a message sent, once under its id."""
        with translated("dynamodb"), contextlib.suppress(self.client.exceptions.ConditionalCheckFailedException):
            self.client.put_item(
                TableName=self.table, Item=write_posting(posting, now), ConditionExpression="attribute_not_exists(id)"
            )

    def park(self, posting: str, reason: str) -> None:
        """Keep it with its reason; it never expires."""
        with translated("dynamodb"), contextlib.suppress(self.client.exceptions.ConditionalCheckFailedException):
            self.client.update_item(
                TableName=self.table,
                Key={"id": {"S": posting}},
                UpdateExpression="SET parked = if_not_exists(parked, :reason)",
                ConditionExpression="attribute_exists(id)",
                ExpressionAttributeValues={":reason": {"S": reason}},
            )

    def mark_sent(self, posting: str, now: datetime) -> None:
        """Note that it was sent, and let it expire."""
        with translated("dynamodb"), contextlib.suppress(self.client.exceptions.ConditionalCheckFailedException):
            self.client.update_item(
                TableName=self.table,
                Key={"id": {"S": posting}},
                UpdateExpression="SET sent_at = if_not_exists(sent_at, :now), #ttl = if_not_exists(#ttl, :ttl)",
                ConditionExpression="attribute_exists(id)",
                ExpressionAttributeNames={"#ttl": "ttl"},
                ExpressionAttributeValues={
                    ":now": {"S": now.isoformat()},
                    ":ttl": {"N": str(int((now + KEPT).timestamp()))},
                },
            )
