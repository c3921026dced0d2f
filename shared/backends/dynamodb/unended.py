"""Job records that have not ended although their message is gone, or can never be sent, in DynamoDB."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shared.backends.aws import translated
from shared.backends.dynamodb.conditional_writes import update
from shared.backends.dynamodb.job_record_conditions import conditional
from shared.backends.dynamodb.job_record_ends import BURY, buried_unbegun, buried_values
from shared.backends.dynamodb.job_record_item import LOOK_AT, UNENDED, read_view
from shared.backends.dynamodb.reads import query
from shared.clock import to_millis
from shared.errors import ClaimLost
from shared.job_record import Status

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from shared.job_record import JobView
    from shared.message import Message
    from shared.outcome import Failure

INDEX = "unended"
_AS_SEEN = "look_at = :seen AND #death = :death AND (#status IN (:accepted, :retrying, :waiting) OR (#status = :running AND #until < :now))"


@dataclass(frozen=True, slots=True)
class DynamoDBUnended:
    """The table of job records, as the rescue sees it."""

    client: Any
    table: str

    def unended(self, shard: int, now: datetime) -> Iterator[JobView]:
        """Jobs that have not ended and whose message must be gone by now."""
        found = query(
            self.client,
            TableName=self.table,
            IndexName=INDEX,
            KeyConditionExpression=f"{UNENDED} = :shard AND {LOOK_AT} <= :now",
            ExpressionAttributeValues={":shard": {"S": str(shard)}, ":now": {"S": now.isoformat()}},
        )
        for keys in found:
            with translated("dynamodb"):
                answer = self.client.get_item(TableName=self.table, Key={"id": keys["id"]}, ConsistentRead=True)
            item = answer.get("Item", {})
            # The index may still show what has ended or was given back since.
            if LOOK_AT in item and item[LOOK_AT]["S"] <= now.isoformat():
                yield read_view(keys["id"]["S"], item)

    def note_rescue(self, view: JobView, look_at: datetime, now: datetime) -> None:
        """Note that the job was sent anew."""
        values = {":look_at": {"S": look_at.isoformat()}, ":none": {"N": "0"}, ":one": {"N": "1"}}
        self._update(view, "SET look_at = :look_at, rescues = if_not_exists(rescues, :none) + :one", values, now)

    def give_up(self, view: JobView, failure: Failure, now: datetime) -> None:
        """Mark the job dead-lettered."""
        self._update(view, BURY, buried_values(failure, now), now)

    def bury_unbegun(self, message: Message, failure: Failure, now: datetime) -> None:
        """Mark an accepted job dead-lettered of which no attempt ever began."""
        place = {"TableName": self.table, "Key": {"id": {"S": message.record or ""}}}
        update(self.client, **place, **buried_unbegun(message, failure, now))

    def _update(self, view: JobView, change: str, values: dict[str, Any], now: datetime) -> None:
        values = {
            ":seen": {"S": "" if view.look_at is None else view.look_at.isoformat()},
            ":death": {"N": str(view.death)},
            ":accepted": {"S": Status.ACCEPTED.value},
            ":retrying": {"S": Status.RETRYING.value},
            ":waiting": {"S": Status.WAITING.value},
            ":running": {"S": Status.RUNNING.value},
            ":now": {"N": str(to_millis(now))},
            **values,
        }
        place = {"TableName": self.table, "Key": {"id": {"S": view.record}}}
        if update(self.client, **place, **conditional(change, _AS_SEEN, values)) is not None:
            message = "The job has changed since it was seen."
            raise ClaimLost(message)
