"""The jobs of an owner in DynamoDB: two sparse indexes of the table of job records, which accepting alone puts jobs into.

Two, since one changes with a job and the other does not: what is unfinished leaves its index with one small write when the
job ends, and the list is never written again. One index of both would be written at each change of a status.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from shared.backends.aws import translated
from shared.backends.dynamodb.job_record_item import CREATED_AT, LISTED_FOR, UNFINISHED_OF, read_view
from shared.backends.dynamodb.reads import batch_get
from shared.intake.owned_jobs import Listed, Page, Place

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from shared.clock import Clock

BY_OWNER = "by_owner"  # every job that was accepted for an owner, until it expires
UNFINISHED = "unfinished"  # those that have not ended since
# What a list tells of a job, and who may see it: not its payload, nor its result, which may be large.
READ = {
    "#id": "id",
    "#status": "status",
    "#owner": "owner",
    "#type": "job_type",
    "#op": "operation_id",
    "#ex": "expiration",
}


@dataclass(frozen=True, slots=True)
class DynamoDBOwnedJobs:
    """Lists and counts the jobs of an owner."""

    client: Any
    table: str
    clock: Clock
    random: Random

    def page(self, owner: str, limit: int, after: Place | None, now: datetime) -> Page:
        """The owner's jobs that come after a place: in the order of the index, with what the records say now."""
        start: dict[str, Any] = {}
        if after is not None:
            start["ExclusiveStartKey"] = {
                "id": {"S": after.record},
                LISTED_FOR: {"S": owner},
                CREATED_AT: {"S": after.created_at.isoformat()},
            }
        with translated("dynamodb"):
            answer = self.client.query(
                TableName=self.table,
                IndexName=BY_OWNER,
                KeyConditionExpression=f"{LISTED_FOR} = :owner",
                ExpressionAttributeValues={":owner": {"S": owner}},
                ScanIndexForward=False,
                Limit=limit + 1,  # one more tells whether there is a next page
                **start,
            )
        places = [Place(datetime.fromisoformat(i[CREATED_AT]["S"]), i["id"]["S"]) for i in answer["Items"]]
        items = self._items([place.record for place in places[:limit]])
        listed = []
        for place in places[:limit]:
            item = items.pop(place.record, None)  # once: a job that was accepted anew may stand in the index twice
            if item is None or item.get("owner", {}).get("S") != owner:
                continue
            view = read_view(place.record, item)
            if not view.has_expired(now):
                listed.append(Listed(view, place.created_at))
        return Page(tuple(listed), places[limit - 1] if len(places) > limit else None)

    def unfinished(self, owner: str, most: int) -> int:
        """Count in the index, which holds keys alone: a thousand take some 30 read units."""
        with translated("dynamodb"):
            answer = self.client.query(
                TableName=self.table,
                IndexName=UNFINISHED,
                KeyConditionExpression=f"{UNFINISHED_OF} = :owner",
                ExpressionAttributeValues={":owner": {"S": owner}},
                Select="COUNT",
                Limit=most,
            )
        return int(answer["Count"])

    def _items(self, records: Sequence[str]) -> dict[str, dict[str, Any]]:
        """The items, read consistently; those that are gone are left out.

        Raises:
            Unavailable: DynamoDB did not give them all.
        """
        keys = [{"id": {"S": record}} for record in dict.fromkeys(records)]
        names = {"ProjectionExpression": ", ".join(READ), "ExpressionAttributeNames": READ}
        items = batch_get(self.client, self.table, keys, self.clock, self.random, **names)
        return {item["id"]["S"]: item for item in items}
