"""Job records in memory that have not ended although their message is gone, or can never be sent."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from shared.backends.dynamodb.outbox import shard_of
from shared.backends.memory.job_records import MemoryRecords
from shared.errors import ClaimLost
from shared.job_record import JobView, Status

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from shared.message import Message
    from shared.outcome import Failure


@dataclass(kw_only=True)
class MemoryUnended(MemoryRecords):
    """The job records as the rescue and the relay see them."""

    def unended(self, shard: int, now: datetime) -> Iterator[JobView]:
        """Jobs that have not ended and whose message must be gone by now."""
        with self.lock:
            found = [
                view
                for view in self.records.values()
                if view.look_at is not None and view.look_at <= now and shard_of(view.record) == shard
            ]
        yield from sorted(found, key=lambda view: (view.look_at, view.record))

    def note_rescue(self, view: JobView, look_at: datetime, now: datetime) -> None:
        """Note that the job was sent anew."""
        with self.lock:
            self._demand_as_seen(view, now)
            seen = self.records[view.record]
            self.records[view.record] = replace(seen, look_at=look_at, rescues=seen.rescues + 1)

    def give_up(self, view: JobView, failure: Failure, now: datetime) -> None:
        """Mark the job dead-lettered."""
        with self.lock:
            self._demand_as_seen(view, now)
            self._bury_lost(self.records[view.record], failure, now)

    def bury_unbegun(self, message: Message, failure: Failure, now: datetime) -> None:
        """Mark an accepted job dead-lettered of which no attempt ever began."""
        with self.lock:
            seen = self.records.get(message.record or "")
            if seen is None or seen.status is not Status.ACCEPTED or seen.begun_at is not None:
                return
            mine = (message.job_type, message.idempotency_key, message.payload)
            if mine == (seen.names["job_type"], seen.names["idempotency_key"], seen.payload):
                self._bury_lost(seen, failure, now)

    def _bury_lost(self, seen: JobView, failure: Failure, now: datetime) -> None:
        self.unfinished.discard(seen.record)
        self.records[seen.record] = replace(
            seen,
            status=Status.DEAD_LETTERED,
            death=seen.death + 1,
            ended_at=now,
            look_at=None,
            claim_until=None,
            first_failure=seen.first_failure or failure,
            last_failure=failure,
        )

    def _demand_as_seen(self, view: JobView, now: datetime) -> None:
        seen = self.records.get(view.record)
        is_free = seen is not None and (
            seen.status in {Status.ACCEPTED, Status.RETRYING, Status.WAITING}
            or (seen.status is Status.RUNNING and seen.claim_until is not None and not seen.is_held(now))
        )
        if seen is None or not is_free or (seen.look_at, seen.death) != (view.look_at, view.death):
            message = "The job has changed since it was seen."
            raise ClaimLost(message)
