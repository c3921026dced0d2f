"""Intents in DynamoDB: which attempt of a job was about to make a call that cannot be repeated, in the job's record itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from shared.backends.aws import translated
from shared.errors import ClaimLost
from shared.job_record import Status

if TYPE_CHECKING:
    from shared.job_record import Hold

HELD = "attempt_token = :token AND #status = :running"


@dataclass(frozen=True, slots=True)
class DynamoDBIntents:
    """The attribute `intents` of a record: a map from the dependency to the token of the attempt."""

    client: Any
    table: str

    def intend(self, hold: Hold, dependency: str) -> bool:
        """Note that this attempt is about to call; False if another attempt noted it."""
        first = {":noted": {"M": {dependency: {"S": hold.token}}}}
        old = self._update(hold, "SET intents = :noted", "attribute_not_exists(intents)", first)
        if old is not None and dependency not in old:  # it has noted another dependency
            names = {"#dependency": dependency}
            free = "attribute_not_exists(intents.#dependency)"
            old = self._update(hold, "SET intents.#dependency = :token", free, {}, names)
        return old is None or old[dependency]["S"] == hold.token  # the latter if a reply was lost

    def withdraw(self, hold: Hold, dependency: str) -> None:
        """Take this attempt's note back."""
        names = {"#dependency": dependency}
        self._update(hold, "REMOVE intents.#dependency", "intents.#dependency = :token", {}, names)

    def _update(
        self, hold: Hold, update: str, condition: str, values: dict[str, Any], names: dict[str, str] | None = None
    ) -> dict[str, Any] | None:
        """Change the record if it is held and the condition holds; give the intents where the latter does not.

        Raises:
            ClaimLost: it is not held.
            Unavailable: DynamoDB did not answer.
        """
        try:
            with translated("dynamodb"):
                self.client.update_item(
                    TableName=self.table,
                    Key={"id": {"S": hold.record}},
                    UpdateExpression=update,
                    ConditionExpression=f"{HELD} AND {condition}",
                    ExpressionAttributeNames={"#status": "status", **(names or {})},
                    ExpressionAttributeValues={
                        ":token": {"S": hold.token},
                        ":running": {"S": Status.RUNNING.value},
                        **values,
                    },
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
        except ClientError as error:
            if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
                raise
            item: dict[str, Any] = error.response.get("Item", {})  # type: ignore[assignment]
            is_held = (
                item.get("attempt_token", {}).get("S") == hold.token and item["status"]["S"] == Status.RUNNING.value
            )
            if not is_held:
                message = "The job is no longer held by this attempt."
                raise ClaimLost(message) from error
            noted: dict[str, Any] = item.get("intents", {}).get("M", {})
            return noted
        return None
