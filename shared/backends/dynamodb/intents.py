"""Intents in DynamoDB: which attempt of a job was about to make a call that cannot be repeated, in the job's record itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shared.backends.dynamodb.conditional_writes import update
from shared.backends.dynamodb.job_record_conditions import HELD, conditional, demand_held, held_values
from shared.job_record import Status

if TYPE_CHECKING:
    from shared.job_record import Hold


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
        self, hold: Hold, change: str, condition: str, values: dict[str, Any], names: dict[str, str] | None = None
    ) -> dict[str, Any] | None:
        """Change the record if it is held and the condition holds; give the intents where the latter does not.

        Raises:
            ClaimLost: it is not held.
            Unavailable: DynamoDB did not answer.
        """
        held = conditional(change, f"{HELD} AND {condition}", {**held_values(hold), **values})
        held["ExpressionAttributeNames"] |= names or {}
        item = update(self.client, TableName=self.table, Key={"id": {"S": hold.record}}, **held)
        demand_held(hold, item, Status.RUNNING)
        noted: dict[str, Any] | None = None if item is None else item.get("intents", {}).get("M", {})
        return noted
