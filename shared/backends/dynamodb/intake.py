"""Which job types are closed, in the jobs table: one item each, whose id no job record can have."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from shared.backends.aws import translated
from shared.intake.shedding import Closed
from shared.job_record import EXPIRY_MARGIN


@dataclass(frozen=True, slots=True)
class DynamoDBIntakeStore:
    """Keeps it under `intake/<job type>`: record ids are hexadecimal digits. It goes by itself some time after its end."""

    client: Any
    jobs_table: str

    def closed(self, job_type: str) -> Closed | None:
        """What was last said of a job type."""
        with translated("dynamodb"):
            answer = self.client.get_item(TableName=self.jobs_table, Key=_key(job_type), ConsistentRead=True)
        item = answer.get("Item")
        return None if item is None else Closed(datetime.fromisoformat(item["until"]["S"]), item["reason"]["S"])

    def close(self, job_type: str, closed: Closed) -> None:
        """Close intake."""
        item = {
            **_key(job_type),
            "until": {"S": closed.until.isoformat()},
            "reason": {"S": closed.reason},
            "ttl": {"N": str(int((closed.until + EXPIRY_MARGIN).timestamp()))},
        }
        with translated("dynamodb"):
            self.client.put_item(TableName=self.jobs_table, Item=item)

    def open(self, job_type: str) -> None:
        """Open intake again."""
        with translated("dynamodb"):
            self.client.delete_item(TableName=self.jobs_table, Key=_key(job_type))


def _key(job_type: str) -> dict[str, Any]:
    return {"id": {"S": f"intake/{job_type}"}}
