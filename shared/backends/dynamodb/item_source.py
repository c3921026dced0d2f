"""Reading business items to show them: many by their keys, or all of a partition, consistently.

It writes nothing, and is no part of a unit of work: what it gives is not one moment's, and its callers look whether it fits.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from shared.backends.dynamodb.items import stored_of, wire_key
from shared.backends.dynamodb.reads import batch_get, query

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from shared.backends.dynamodb.items import DynamoDBItems
    from shared.clock import Clock
    from shared.item import Key, Stored
    from shared.table import Table


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
        wire = [wire_key(table, key) for key in dict.fromkeys(keys)]
        items = batch_get(self.items.client, self.items.name_of(table), wire, self.clock, self.random)
        return {
            tuple(str(stored.attributes[name]) for name in table.key_names): stored
            for stored in map(stored_of, items)
            if not stored.deleted
        }

    def read_all(self, table: Table, partition: str, most: int) -> list[Stored]:
        """Read the items of a partition; a page of DynamoDB's ends at a megabyte."""
        items = query(
            self.items.client,
            TableName=self.items.name_of(table),
            KeyConditionExpression="#key = :key",
            ExpressionAttributeNames={"#key": table.key},
            ExpressionAttributeValues={":key": {"S": partition}},
            ConsistentRead=True,
        )
        return list(islice((stored for stored in map(stored_of, items) if not stored.deleted), most))
