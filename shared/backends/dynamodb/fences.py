"""Fencing numbers in DynamoDB: a counter for each lock key, counted on by whoever proves that it still holds its job."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shared.backends.aws import translated
from shared.backends.dynamodb.job_record_conditions import HELD, held_values, names_in
from shared.backends.dynamodb.transactions import transact
from shared.errors import ClaimLost

if TYPE_CHECKING:
    from random import Random

    from shared.clock import Clock
    from shared.job_record import Hold


@dataclass(frozen=True, slots=True)
class DynamoDBFences:
    """The counters, as items of their own in the table of job records; they never expire."""

    client: Any
    table: str
    clock: Clock
    random: Random

    def next(self, hold: Hold, key: str) -> int:
        """Count on, in one transaction with the proof that the job is still held; a repeated request changes nothing.

        Raises:
            ClaimLost: the job is not held, or another attempt has a later number already.
            Unavailable: DynamoDB is busy or did not answer.
        """
        # No name for the transaction: the condition itself tells a repeated request.
        cancelled = transact(self.client, [self._held(hold), self._count(hold, key)], self.clock, self.random)
        if cancelled is not None and cancelled.in_the_way[0] is not None:
            message = "Another attempt holds the job, or it has ended: no number for this one."
            raise ClaimLost(message)
        return self._read(hold, key)  # also if this attempt has its number, and the reply was lost

    def _held(self, hold: Hold) -> dict[str, Any]:
        return {
            "ConditionCheck": {
                "TableName": self.table,
                "Key": {"id": {"S": hold.record}},
                "ConditionExpression": HELD,
                "ExpressionAttributeNames": names_in(HELD),
                "ExpressionAttributeValues": held_values(hold),
            }
        }

    def _count(self, hold: Hold, key: str) -> dict[str, Any]:
        return {
            "Update": {
                "TableName": self.table,
                "Key": {"id": {"S": _fence_id(key)}},
                "UpdateExpression": "SET fence = if_not_exists(fence, :none) + :one, fenced_key = :key, attempt_token = :token",
                "ConditionExpression": "attribute_not_exists(attempt_token) OR attempt_token <> :token",
                "ExpressionAttributeValues": {
                    ":none": {"N": "0"},
                    ":one": {"N": "1"},
                    ":key": {"S": key},
                    ":token": {"S": hold.token},
                },
            }
        }

    def _read(self, hold: Hold, key: str) -> int:
        """Read the number back: a transaction gives no values."""
        with translated("dynamodb"):
            answer = self.client.get_item(TableName=self.table, Key={"id": {"S": _fence_id(key)}}, ConsistentRead=True)
        item = answer["Item"]
        if item["attempt_token"]["S"] != hold.token:
            message = "Another attempt has a later number already."
            raise ClaimLost(message)
        return int(item["fence"]["N"])


def _fence_id(key: str) -> str:
    """The id of a key's counter; no record has one like it."""
    return f"fence#{hashlib.sha256(key.encode()).hexdigest()}"
