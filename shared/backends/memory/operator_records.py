"""The twin in memory of what people change about job records."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from shared.desk.operator_records import FAILURES_KEPT
from shared.errors import ClaimLost
from shared.job_record import RETENTION, Replayed, Status

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from shared.backends.memory.acceptances import MemoryAcceptances
    from shared.clock import Clock
    from shared.desk.operator_records import Ending, Reopening
    from shared.job_record import JobView


@dataclass
class MemoryOperatorRecords:
    """The job records of a memory database, as the operator changes them."""

    database: MemoryAcceptances
    clock: Clock

    def views(self, records: Sequence[str]) -> dict[str, JobView]:
        """Read records."""
        with self.database.lock:
            found = {name: self.database.records[name] for name in records if name in self.database.records}
        now = self.clock.now()
        return {name: view for name, view in found.items() if not view.has_expired(now)}

    def reopen(self, asked: Sequence[Reopening], now: datetime) -> frozenset[str]:
        """Make jobs accepted again."""
        with self.database.lock:
            return frozenset(each.seen.record for each in asked if self._is_reopened(each, now))

    def end(self, seen: JobView, ending: Ending, now: datetime) -> None:
        """End a job."""
        with self.database.lock:
            view = self._demand_as_seen(seen)
            self.database.unfinished.discard(seen.record)
            self.database.records[seen.record] = replace(
                view,
                status=ending.status,
                result=ending.result or view.result,
                payload=None,
                not_before=None,
                claim_until=None,
                look_at=None,
                ended_at=now,
                expires=max(now, view.not_before or now) + RETENTION,
            )

    def give_back(self, seen: JobView, token: str, now: datetime, *, although_held: bool) -> None:
        """Let the next attempt begin at once."""
        with self.database.lock:
            view = self._demand_as_seen(seen)
            if not although_held and view.is_held(now):
                raise ClaimLost(_CHANGED)
            self.database.records[seen.record] = replace(
                view,
                status=Status.RETRYING,
                token=token,
                claim_until=None,
                not_before=now,
                look_at=now + self.database.lost_after,
            )

    def _is_reopened(self, each: Reopening, now: datetime) -> bool:
        view = self.database.records.get(each.seen.record)
        if view is None:
            return False
        if _what(view) != _what(each.seen) or view.is_held(now):
            return view.status is Status.ACCEPTED and view.replayed is not None and view.death == each.death
        if view.record in self.database.accepted_at:
            self.database.unfinished.add(view.record)
        self.database.records[view.record] = replace(
            view,
            status=Status.ACCEPTED,
            attempts=0,
            death=each.death,
            result=None,
            tags=(),
            token=None,
            claim_until=None,
            not_before=None,
            expires=None,
            ended_at=None,
            look_at=now + self.database.lost_after,
            rescues=0,
            cancelling=False,
            first_failure=None,
            last_failure=None,
            failures=view.failures[-FAILURES_KEPT:],
            replays=view.replays + 1,
            replayed=Replayed(each.death, now, each.by),
        )
        return True

    def _demand_as_seen(self, seen: JobView) -> JobView:
        view = self.database.records.get(seen.record)
        if view is None or _what(view) != _what(seen):
            raise ClaimLost(_CHANGED)
        return view


def _what(view: JobView) -> tuple[Status, int, int, str | None]:
    return view.status, view.attempts, view.death, view.token


_CHANGED = "The job has changed since it was seen."
