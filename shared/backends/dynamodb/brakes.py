"""Which workers are braked, in the jobs table: one item each, whose id no job record can have."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from shared.backends.aws import translated
from shared.backends.dynamodb.conditional_writes import put
from shared.rounds.brake import Brake, BrakeState

KEPT = timedelta(days=30)  # after its end, for people who ask what was


@dataclass(frozen=True, slots=True)
class DynamoDBBrakes:
    """Keeps it under `brake/<worker>`: record ids are hexadecimal digits. Functions delete nothing: one without a state is none."""

    client: Any
    jobs_table: str

    def read(self, worker: str) -> Brake | None:
        """The brake of a worker."""
        with translated("dynamodb"):
            answer = self.client.get_item(TableName=self.jobs_table, Key=_key(worker), ConsistentRead=True)
        return _read(answer.get("Item", {}))

    def write(self, worker: str, brake: Brake | None, seen: Brake | None) -> bool:
        """Put a brake in the place of what was seen there."""
        values: dict[str, Any] = {} if seen is None else {f":{name}": value for name, value in _written(seen).items()}
        as_seen = "attribute_not_exists(brake)"
        if seen is not None:
            as_seen = " AND ".join(f"#{name} = :{name}" for name in _written(seen))
        in_the_way = put(
            self.client,
            TableName=self.jobs_table,
            Item={**_key(worker), **({} if brake is None else _written(brake)), **_ttl(brake or seen)},
            ConditionExpression=as_seen,
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
            **({} if seen is None else {"ExpressionAttributeNames": {f"#{n}": n for n in _written(seen)}}),
            **({} if seen is None else {"ExpressionAttributeValues": values}),
        )
        return in_the_way is None or _read(in_the_way) == brake  # the latter if the reply was lost


def _key(worker: str) -> dict[str, Any]:
    return {"id": {"S": f"brake/{worker}"}}


def _written(brake: Brake) -> dict[str, Any]:
    return {
        "brake": {"S": brake.state.value},
        "set_by": {"S": brake.by},
        "why": {"S": brake.why},
        "since": {"S": brake.since.isoformat()},
        "until": {"S": brake.until.isoformat()},
        "by_hand": {"BOOL": brake.by_hand},
    }


def _read(item: dict[str, Any]) -> Brake | None:
    if "brake" not in item:
        return None
    since, until = (datetime.fromisoformat(item[name]["S"]) for name in ("since", "until"))
    return Brake(
        BrakeState(item["brake"]["S"]), item["set_by"]["S"], item["why"]["S"], since, until, item["by_hand"]["BOOL"]
    )


def _ttl(brake: Brake | None) -> dict[str, Any]:
    return {} if brake is None else {"ttl": {"N": str(int((brake.until + KEPT).timestamp()))}}
