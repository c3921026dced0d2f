"""The outbox table in DynamoDB: what an item looks like, and marking it sent."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from shared.backends.aws import translated
from shared.backends.dynamodb.conditional_writes import put, update
from shared.backends.dynamodb.reads import query
from shared.outbox import KEPT, SHARDS, Overdue, Posting, due_at, left_of

if TYPE_CHECKING:
    from collections.abc import Iterator

WAITING = "waiting"  # the index of items that are neither sent nor parked, by shard and due time; sparse, keys alone
# The index of ordered items that wait, by lane and place. It is a local one, since only that can be read consistently: an item
# that is missing there for a moment would be overtaken.
LANES = "lanes"
PLACE = "place"


def write_posting(posting: Posting, now: datetime, number: int = 0) -> dict[str, Any]:
    """The item of a posting, that its commit has put there as its `number`-th."""
    return {
        "lane": {"S": posting.lane},
        "id": {"S": posting.id},
        "worker": {"S": posting.worker},
        "body": {"S": posting.body},
        "delay": {"N": str(int(posting.delay.total_seconds()))},
        "created_at": {"S": now.isoformat()},
        "pending": {"S": str(shard_of(posting.lane))},
        "due_at": {"S": due_at(posting, now).isoformat()},
        **({PLACE: {"S": f"{now.isoformat()}/{number:03}"}} if posting.ordered else {}),
        **({"group": {"S": posting.group}} if posting.group is not None else {}),
        **({"tenant": {"S": posting.tenant}} if posting.tenant is not None else {}),
        **({"attributes": {"M": {n: {"S": v} for n, v in posting.attributes.items()}}} if posting.attributes else {}),
    }


def shard_of(name: str) -> int:
    """The shard of an index."""
    return zlib.crc32(name.encode()) % SHARDS


def _key(posting: Posting) -> dict[str, Any]:
    return {"lane": {"S": posting.lane}, "id": {"S": posting.id}}


def read_posting(item: dict[str, Any]) -> Posting:
    """A posting from its item."""
    return Posting(
        id=item["id"]["S"],
        worker=item["worker"]["S"],
        body=item["body"]["S"],
        delay=timedelta(seconds=int(item["delay"]["N"])),
        group=item["group"]["S"] if "group" in item else None,
        attributes={name: value["S"] for name, value in item.get("attributes", {}).get("M", {}).items()},
        ordered=item["lane"]["S"] != item["id"]["S"],
        tenant=item["tenant"]["S"] if "tenant" in item else None,
    )


def read_waiting(item: dict[str, Any], now: datetime) -> Posting:
    """A posting with what is left of its delay."""
    posting = read_posting(item)
    return replace(posting, delay=left_of(posting, datetime.fromisoformat(item["created_at"]["S"]), now))


@dataclass(frozen=True, slots=True)
class DynamoDBOutbox:
    """The outbox table."""

    client: Any
    table: str

    def post(self, posting: Posting, now: datetime) -> None:
        """Have a message sent, once under its id."""
        put(
            self.client,
            TableName=self.table,
            Item=write_posting(posting, now),
            ConditionExpression="attribute_not_exists(id)",
        )

    def lane(self, name: str) -> Iterator[Posting]:
        """The ordered postings of a lane that wait, in the order of their commits."""
        found = query(
            self.client,
            TableName=self.table,
            IndexName=LANES,
            ConsistentRead=True,
            KeyConditionExpression="lane = :lane",
            ExpressionAttributeValues={":lane": {"S": name}},
        )
        for keys in found:
            item = self._waiting({name: keys[name] for name in ("lane", "id")})
            if item is not None:
                yield read_posting(item)

    def park(self, posting: Posting, reason: str) -> None:
        """Keep it with its reason; it never expires."""
        update(
            self.client,
            TableName=self.table,
            Key=_key(posting),
            UpdateExpression="SET parked = if_not_exists(parked, :reason) REMOVE pending, place",
            ConditionExpression="attribute_exists(id)",
            ExpressionAttributeValues={":reason": {"S": reason}},
        )

    def mark_sent(self, posting: Posting, now: datetime) -> None:
        """Note that it was sent, and let it expire."""
        update(
            self.client,
            TableName=self.table,
            Key=_key(posting),
            UpdateExpression=(
                "SET sent_at = if_not_exists(sent_at, :now), #ttl = if_not_exists(#ttl, :ttl) REMOVE pending, place"
            ),
            ConditionExpression="attribute_exists(id)",
            ExpressionAttributeNames={"#ttl": "ttl"},
            ExpressionAttributeValues={
                ":now": {"S": now.isoformat()},
                ":ttl": {"N": str(int((now + KEPT).timestamp()))},
            },
        )

    def overdue(self, shard: int, before: datetime, now: datetime) -> Iterator[Overdue]:
        """What waits since before that moment."""
        found = query(
            self.client,
            TableName=self.table,
            IndexName=WAITING,
            KeyConditionExpression="pending = :shard AND due_at < :before",
            ExpressionAttributeValues={":shard": {"S": str(shard)}, ":before": {"S": before.isoformat()}},
        )
        for keys in found:
            item = self._waiting({name: keys[name] for name in ("lane", "id")})
            if item is not None:
                yield Overdue(read_waiting(item, now), datetime.fromisoformat(item["due_at"]["S"]))

    def _waiting(self, key: dict[str, Any]) -> dict[str, Any] | None:
        """The item itself, if it still waits: an index may show what has been sent."""
        with translated("dynamodb"):
            answer = self.client.get_item(TableName=self.table, Key=key, ConsistentRead=True)
        item: dict[str, Any] = answer.get("Item", {})
        return item if "pending" in item else None
