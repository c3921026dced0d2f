"""Reading business items to show them: many by their keys, or all of a partition, consistently.

It writes nothing, and is no part of a unit of work: what it gives is not one moment's, and its callers look whether it fits.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from shared.backends.aws import translated
from shared.backends.dynamodb import stored_of, wire_key
from shared.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from shared.backends.dynamodb import DynamoDBItems
    from shared.clock import Clock
    from shared.item import Key, Stored
    from shared.table import Table

BATCH = 100  # keys of one BatchGetItem
TRIES = 4
WAIT = timedelta(milliseconds=40)


@dataclass(frozen=True, slots=True)
class DynamoDBItemSource:
    """Reads items of the tables that `items` knows."""

    items: DynamoDBItems
    clock: Clock
    random: Random

    def read(self, table: Table, key: Key) -> Stored | None:
        """Read an item or its tombstone."""
        return self.items.read(table, key)

    def read_many(self, table: Table, keys: Sequence[Key]) -> dict[Key, Stored]:
        """Read items by their keys; each once, whatever is asked twice."""
        wanted = list(dict.fromkeys(keys))
        found: dict[Key, Stored] = {}
        for begin in range(0, len(wanted), BATCH):
            for stored in self._batch(table, wanted[begin : begin + BATCH]):
                if not stored.deleted:
                    found[tuple(str(stored.attributes[name]) for name in table.key_names)] = stored
        return found

    def read_all(self, table: Table, partition: str, most: int) -> list[Stored]:
        """Read the items of a partition; a page of DynamoDB's ends at a megabyte."""
        found: list[Stored] = []
        start: dict[str, Any] = {}
        while len(found) < most:
            with translated("dynamodb"):
                answer = self.items.client.query(
                    TableName=self.items.name_of(table),
                    KeyConditionExpression="#key = :key",
                    ExpressionAttributeNames={"#key": table.key},
                    ExpressionAttributeValues={":key": {"S": partition}},
                    ConsistentRead=True,
                    **start,
                )
            found += [stored for item in answer["Items"] if not (stored := stored_of(item)).deleted]
            if "LastEvaluatedKey" not in answer:
                break
            start = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}
        return found[:most]

    def _batch(self, table: Table, keys: Sequence[Key]) -> list[Stored]:
        """At most 100 items; DynamoDB leaves out what is too much at once, and is asked for it again.

        Raises:
            Unavailable: it did not give them all.
        """
        name = self.items.name_of(table)
        wanted = [wire_key(table, key) for key in keys]
        found: list[Stored] = []
        for left in reversed(range(TRIES)):
            asked = {name: {"Keys": wanted, "ConsistentRead": True}}
            with translated("dynamodb"):
                answer = self.items.client.batch_get_item(RequestItems=asked)
            found += [stored_of(item) for item in answer["Responses"].get(name, [])]
            wanted = answer.get("UnprocessedKeys", {}).get(name, {}).get("Keys", [])
            if not wanted:
                return found
            if left:
                self.clock.sleep(WAIT.total_seconds() * 2 ** (TRIES - left) * self.random.random())
        message = f"DynamoDB gave {len(found)} items and not the rest."
        raise Unavailable(message, dependency="dynamodb")
