"""Job records as the operator sees them, of every owner: looked at consistently, never changed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from shared.backends.aws import translated
from shared.backends.job_record_item import read_view

if TYPE_CHECKING:
    from shared.clock import Clock
    from shared.job_record import JobView


@dataclass(frozen=True, slots=True)
class Seen:
    """A job record, and what stands in it beside the view: when the job was accepted, and when it last changed."""

    view: JobView
    created_at: datetime | None = None
    updated_at: datetime | None = None


class Jobs(Protocol):
    """Where job records are looked at."""

    def look(self, record: str) -> Seen | None:
        """The record; None if there is none, or it has expired.

        Raises:
            Unavailable: the store did not answer.
        """
        ...


@dataclass(frozen=True, slots=True)
class DynamoDBJobs:
    """Job records in DynamoDB."""

    client: Any
    table: str
    clock: Clock

    def look(self, record: str) -> Seen | None:
        """The record."""
        with translated("dynamodb"):
            answer = self.client.get_item(TableName=self.table, Key={"id": {"S": record}}, ConsistentRead=True)
        item: dict[str, Any] | None = answer.get("Item")
        if item is None or "status" not in item:  # other things live in that table, too
            return None
        view = read_view(record, item)
        if view.expires is not None and view.expires <= self.clock.now():
            return None
        return Seen(view, _moment(item, "created_at"), _moment(item, "updated_at"))


def _moment(item: dict[str, Any], name: str) -> datetime | None:
    return datetime.fromisoformat(item[name]["S"]) if name in item else None
