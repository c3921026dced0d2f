"""The twin in memory of an owner's list and count, over the records of the memory database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shared.intake.owned_jobs import Listed, Page

if TYPE_CHECKING:
    from datetime import datetime

    from shared.backends.memory.database import MemoryDatabase
    from shared.intake.owned_jobs import Place


@dataclass(frozen=True, slots=True)
class MemoryOwnedJobs:
    """Lists and counts the jobs of an owner."""

    database: MemoryDatabase

    def page(self, owner: str, limit: int, after: Place | None, now: datetime) -> Page:
        """The owner's jobs that come after a place, newest first."""
        records = dict(self.database.records)
        jobs = [
            Listed(records[record], created_at)
            for record, created_at in self.database.accepted_at.copy().items()
            if records[record].names["owner"] == owner
        ]
        jobs.sort(key=lambda job: (job.created_at, job.view.record), reverse=True)
        if after is not None:
            jobs = [job for job in jobs if (job.created_at, job.view.record) < (after.created_at, after.record)]
        shown = [job for job in jobs[:limit] if not job.view.has_expired(now)]
        return Page(tuple(shown), jobs[limit - 1].place if len(jobs) > limit else None)

    def unfinished(self, owner: str, most: int) -> int:
        """Count those that have not ended since they were accepted."""
        records = self.database.records
        found = [record for record in self.database.unfinished.copy() if records[record].names["owner"] == owner]
        return min(len(found), most)
