"""Job records as the operator sees them, of every owner: looked at consistently, never changed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from shared.backends.aws import translated
from shared.backends.dynamodb.job_record_item import read_view

if TYPE_CHECKING:
    from collections.abc import Callable

    from shared.clock import Clock
    from shared.job_record import JobView

MOST_READ = 1000  # records in one look through the table, each of which costs half a read unit or more


@dataclass(frozen=True, slots=True)
class Seen:
    """A job record, and what stands in it beside the view: when the job was accepted, and when it last changed."""

    view: JobView
    created_at: datetime | None = None
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Some:
    """Some jobs of the table; `read` records were looked at, and `next` is where the rest begins."""

    jobs: tuple[Seen, ...]
    read: int
    next: str | None = None


class Jobs(Protocol):
    """Where job records are looked at."""

    def look(self, record: str) -> Seen | None:
        """The record; None if there is none, or it has expired.

        Raises:
            Unavailable: the store did not answer.
        """
        ...

    def some(self, wanted: Callable[[JobView], bool], most: int, after: str | None = None) -> Some:
        """Look through the records, in no order, for those that are wanted; a bounded part of the table is read.

        Args:
            wanted: tells which are.
            most: to give at the most.
            after: where to go on, as the last look has told it.

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
        return self._seen(record, item)

    def some(self, wanted: Callable[[JobView], bool], most: int, after: str | None = None) -> Some:
        """Records that are wanted, of at most MOST_READ."""
        jobs: list[Seen] = []
        read = 0
        place = None if after is None else {"id": {"S": after}}
        while read < MOST_READ and len(jobs) < most:
            more: dict[str, Any] = {} if place is None else {"ExclusiveStartKey": place}
            with translated("dynamodb"):
                # As many as are missing, so that none is read that would be left out: the next page goes on behind the last.
                answer = self.client.scan(TableName=self.table, Limit=min(most - len(jobs), 100), **more)
            for item in answer["Items"]:
                seen = self._seen(item["id"]["S"], item) if "status" in item else None
                if seen is not None and wanted(seen.view):
                    jobs.append(seen)
            read += len(answer["Items"])
            place = answer.get("LastEvaluatedKey")
            if place is None:
                break
        return Some(tuple(jobs), read, None if place is None else place["id"]["S"])

    def _seen(self, record: str, item: dict[str, Any]) -> Seen | None:
        view = read_view(record, item)
        if view.has_expired(self.clock.now()):
            return None
        return Seen(view, _moment(item, "created_at"), _moment(item, "updated_at"))


def _moment(item: dict[str, Any], name: str) -> datetime | None:
    return datetime.fromisoformat(item[name]["S"]) if name in item else None
