"""The twin of DynamoDB, in memory: job records, items and the outbox, with transactions over all three.

It passes the same conformance suite as the real one.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from shared.acceptance import Accepted, Overtaken, answer_for
from shared.backends.memory_items import MemoryItems
from shared.backends.memory_outbox import MemoryOutbox
from shared.backends.outbox import shard_of
from shared.claim import Answer, Granted, Step, decide, names_before
from shared.errors import ClaimLost, Conflict
from shared.job_record import ENDED, LOST_AFTER, RETENTION, Hold, JobView, Status, operation_id

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime, timedelta

    from shared.acceptance import Acceptance, Acceptances
    from shared.claim import Claim
    from shared.clock import Clock
    from shared.job_record import Commit, Reconciliation, Release
    from shared.outcome import Failure
    from shared.tag import Tag


@dataclass
class MemoryDatabase(MemoryItems, MemoryOutbox):
    """Job records, business items and the outbox, with transactions over all three."""

    clock: Clock
    records: dict[str, JobView] = field(default_factory=dict)
    fences: dict[str, tuple[int, str]] = field(default_factory=dict)
    accepted_by: dict[str, str] = field(default_factory=dict)
    generations: dict[str, int] = field(default_factory=dict)
    lost_after: timedelta = LOST_AFTER
    accepted_at: dict[str, datetime] = field(default_factory=dict)
    unfinished: set[str] = field(default_factory=set)  # accepted for an owner, and not ended since

    def claim(self, claim: Claim, now: datetime) -> Answer:
        """Hold the job for one more attempt, or say why not."""
        with self.lock:
            seen = self.records.get(claim.record)
            step = decide(seen, claim, now)
            if not isinstance(step, Step):
                return step
            names = {
                "owner": claim.owner if seen is None else seen.names.get("owner", claim.owner),
                "job_type": claim.job_type,
                "idempotency_key": claim.idempotency_key,
                "operation_id": operation_id(claim.record),
            }
            fresh = JobView(
                claim.record,
                Status.RUNNING,
                0,
                claim.fingerprint,
                claim.death,
                payload=claim.payload,
                job_id=claim.job_id or "",
                trace=claim.trace or "",
                version=claim.version,
                run_at=claim.run_at,
                look_at=now + self.lost_after if claim.accepted else None,
                earlier=() if seen is None else seen.earlier if claim.reopens is None else names_before(seen),
                names=names,
            )
            view = seen if step is Step.INCREMENT and seen is not None else fresh
            granted = replace(
                view,
                status=Status.RUNNING,
                attempts=view.attempts + 1,
                token=claim.token,
                job_id=claim.job_id or "" if view.job_id is None else view.job_id,
                trace=claim.trace or "" if view.trace is None else view.trace,
                claim_until=claim.until,
                not_before=None,
            )
            self.records[claim.record] = granted
            return Granted(Hold(claim.record, claim.token), granted.attempts, granted.first_failure)

    def accept(self, acceptance: Acceptance, now: datetime) -> Acceptances:
        """Write the record and the message, or find what was written before."""
        record = acceptance.record
        with self.lock:
            seen = self.records.get(record)
            if seen is not None and not (seen.expires is not None and seen.expires <= now):
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
            if view is None or view.names.get("owner") != owner or (view.expires is not None and view.expires <= now):
                return None
            if view.status is Status.ACCEPTED:
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
            return view

    def commit(self, hold: Hold, commit: Commit, now: datetime) -> None:
        """Write everything, or nothing."""
        with self.lock:
            view = self.records.get(hold.record)
            if view is not None and view.token == hold.token and view.status is commit.status:
                return
            view = self._held(hold)
            for write in commit.writes:
                self.demand(write)
            for reconciliation in commit.reconciliations:
                self._demand_unknown(reconciliation)
            for write in commit.writes:
                self.apply(write)
            for reconciliation in commit.reconciliations:
                self._settle(reconciliation, commit.tags, now)
            for posting in commit.postings:
                self.put_posting(posting, now)
            final = commit.status is not Status.UNKNOWN
            self.unfinished.discard(hold.record)
            self.records[hold.record] = replace(
                view,
                status=commit.status,
                result=commit.result,
                tags=commit.tags,
                claim_until=None,
                payload=None if final else view.payload,
                ended_at=now,
                look_at=None,
                expires=now + RETENTION if final else None,
                first_failure=view.first_failure or commit.failure,
                last_failure=commit.failure or view.last_failure,
            )

    def release(self, hold: Hold, release: Release, now: datetime) -> None:
        """Give the job back."""
        with self.lock:
            view = self.records.get(hold.record)
            if view is not None and view.token == hold.token and view.status is Status.RETRYING:
                return
            view = self._held(hold)
            self.records[hold.record] = replace(
                view,
                status=Status.RETRYING,
                attempts=view.attempts - release.gives_attempt_back,
                claim_until=None,
                not_before=release.not_before,
                look_at=max(now, release.not_before) + self.lost_after,
                first_failure=view.first_failure or release.failure,
                last_failure=release.failure or view.last_failure,
            )

    def bury(self, hold: Hold, death: int, failure: Failure, now: datetime) -> None:
        """Mark the job dead-lettered."""
        with self.lock:
            view = self.records.get(hold.record)
            if view is None or view.token != hold.token:
                raise ClaimLost(_LOST)
            if view.status is Status.DEAD_LETTERED:
                return
            if view.status not in {Status.RUNNING, Status.RETRYING}:
                raise ClaimLost(_LOST)
            self.unfinished.discard(hold.record)
            self.records[hold.record] = replace(
                view,
                status=Status.DEAD_LETTERED,
                death=death,
                ended_at=now,
                look_at=None,
                claim_until=None,
                first_failure=view.first_failure or failure,
                last_failure=failure,
            )

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

    def give_up_unsent(self, record: str, failure: Failure, now: datetime) -> None:
        """Mark an accepted job dead-lettered whose message can never be sent."""
        with self.lock:
            seen = self.records.get(record)
            if seen is not None and seen.status is Status.ACCEPTED:
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
            seen.status in {Status.ACCEPTED, Status.RETRYING}
            or (seen.status is Status.RUNNING and seen.claim_until is not None and seen.claim_until < now)
        )
        if seen is None or not is_free or (seen.look_at, seen.death) != (view.look_at, view.death):
            message = "The job has changed since it was seen."
            raise ClaimLost(message)

    def prolong(self, hold: Hold, until: datetime, now: datetime) -> None:
        """Move the claim's deadline."""
        del now
        with self.lock:
            self.records[hold.record] = replace(self._held(hold), claim_until=until)

    def fence(self, hold: Hold, key: str) -> int:
        """Give the next number of a key."""
        with self.lock:
            self._held(hold)
            number, owner = self.fences.get(key, (0, ""))
            if owner != hold.token:
                number += 1
                self.fences[key] = (number, hold.token)
            return number

    def view(self, record: str) -> JobView | None:
        """Read a record."""
        with self.lock:
            view = self.records.get(record)
            if view is None or (view.expires is not None and view.expires <= self.clock.now()):
                return None
            return view

    def _held(self, hold: Hold) -> JobView:
        view = self.records.get(hold.record)
        if view is None or view.token != hold.token or view.status is not Status.RUNNING:
            raise ClaimLost(_LOST)
        return view

    def _demand_unknown(self, reconciliation: Reconciliation) -> None:
        view = self.records.get(reconciliation.record)
        if view is None or view.status is not Status.UNKNOWN:
            message = "The job to settle is not unknown."
            raise Conflict(message)

    def _settle(self, reconciliation: Reconciliation, tags: tuple[Tag, ...], now: datetime) -> None:
        view = self.records[reconciliation.record]
        final = reconciliation.status in ENDED
        self.records[reconciliation.record] = replace(
            view,
            status=reconciliation.status,
            result=reconciliation.result,
            tags=tags,
            death=view.death if final else 0,
            payload=None if final else view.payload,
            ended_at=now,
            look_at=None if final else now + self.lost_after,
            expires=now + RETENTION if final else None,
        )


_LOST = "Another attempt holds the job, or it has ended."
