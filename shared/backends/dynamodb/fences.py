"""Fencing numbers in DynamoDB: a counter for each lock key, counted on by whoever proves that it still holds its job."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from shared.backends.aws import translated
from shared.errors import ClaimLost, StoreUnavailable
from shared.job_record import Status

if TYPE_CHECKING:
    from random import Random

    from shared.clock import Clock
    from shared.job_record import Hold

TRIES = 3
WAIT = timedelta(milliseconds=50)
CONDITION_FAILED = "ConditionalCheckFailed"


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
        for left in reversed(range(TRIES)):
            try:
                with translated("dynamodb"):
                    # No request token: the condition itself tells a repeated request.
                    self.client.transact_write_items(TransactItems=[self._held(hold), self._count(hold, key)])
                return self._read(hold, key)
            except ClientError as error:
                if error.response["Error"]["Code"] != "TransactionCanceledException":
                    raise
                reasons: Any = error.response.get("CancellationReasons", [])
                codes = [reason.get("Code") for reason in reasons]
                if codes[0] == CONDITION_FAILED:
                    message = "Another attempt holds the job, or it has ended: no number for this one."
                    raise ClaimLost(message) from error
                if codes[1] == CONDITION_FAILED:  # this attempt has its number; the reply was lost
                    return self._read(hold, key)
            self.clock.sleep(WAIT.total_seconds() * 2 ** (TRIES - left) * self.random.random())
        message = "DynamoDB is busy with the same fence."
        raise StoreUnavailable(message, dependency="dynamodb")

    def _held(self, hold: Hold) -> dict[str, Any]:
        return {
            "ConditionCheck": {
                "TableName": self.table,
                "Key": {"id": {"S": hold.record}},
                "ConditionExpression": "attempt_token = :token AND #status = :running",
                "ExpressionAttributeNames": {"#status": "status"},
                "ExpressionAttributeValues": {":token": {"S": hold.token}, ":running": {"S": Status.RUNNING.value}},
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
