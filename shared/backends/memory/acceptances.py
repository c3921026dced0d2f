"""Accepting jobs in memory: the job record and its message together, generations of a key, and cancelling."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from shared.backends.memory.job_records import MemoryRecords
from shared.backends.memory.outbox import MemoryOutbox
from shared.intake.acceptance import STOPPABLE, Accepted, Overtaken, answer_for
from shared.job_record import RETENTION, JobView, Status, operation_id

if TYPE_CHECKING:
    from datetime import datetime

    from shared.intake.acceptance import Acceptance, Acceptances


@dataclass(kw_only=True)
class MemoryAcceptances(MemoryRecords, MemoryOutbox):
    """The job records and the outbox as the front door sees them."""

    accepted_by: dict[str, str] = field(default_factory=dict)
    accepted_at: dict[str, datetime] = field(default_factory=dict)
    generations: dict[str, int] = field(default_factory=dict)

    def accept(self, acceptance: Acceptance, now: datetime) -> Acceptances:
        """Write the record and the message, or find what was written before."""
        record = acceptance.record
        with self.lock:
            seen = self.records.get(record)
            if seen is not None and not seen.has_expired(now):
                return answer_for(acceptance, seen, self.accepted_by.get(record))
            if acceptance.base is not None:
                if self.generations.get(acceptance.base, 0) > acceptance.generation:
                    return Overtaken()
                self.generations[acceptance.base] = acceptance.generation
            names = {
                "owner": acceptance.owner,
                "job_type": acceptance.job_type,
                "idempotency_key": acceptance.idempotency_key,
                "operation_id": operation_id(record),
            }
            view = JobView(
                record,
                Status.ACCEPTED,
                0,
                acceptance.fingerprint,
                not_before=acceptance.run_at,
                run_at=acceptance.run_at,
                trace=acceptance.trace,
                version=acceptance.version,
                look_at=max(now, acceptance.run_at or now) + self.lost_after,
                payload=acceptance.payload,
                names=names,
            )
            self.records[record] = view
            self.accepted_by[record] = acceptance.token
            self.accepted_at[record] = now
            self.unfinished.add(record)
            self.put_posting(acceptance.posting, now)
            return Accepted(view)

    def generation(self, base: str) -> int:
        """The latest generation of a key."""
        with self.lock:
            return self.generations.get(base, 0)

    def cancel(self, record: str, owner: str, now: datetime) -> JobView | None:
        """Cancel the owner's job if no attempt of it ever began, and give it as it is then."""
        with self.lock:
            view = self.records.get(record)
            if view is None or view.names.get("owner") != owner or view.has_expired(now):
                return None
            if view.status is Status.ACCEPTED and view.begun_at is None:
                view = replace(
                    view,
                    status=Status.CANCELLED,
                    payload=None,
                    not_before=None,
                    look_at=None,
                    ended_at=now,
                    expires=max(now, view.not_before or now) + RETENTION,
                )
                self.records[record] = view
                self.unfinished.discard(record)
            elif view.status in STOPPABLE and view.checkpoints:
                view = replace(view, cancelling=True)
                self.records[record] = view
            return view
