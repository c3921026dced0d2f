"""The twin of DynamoDB, in memory: job records, items and the outbox, with transactions over all three.

It passes the same conformance suite as the real one.
"""

from __future__ import annotations

import copy
import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, assert_never

from shared.acceptance import Accepted, answer_for
from shared.backends.outbox import shard_of
from shared.claim import Answer, Granted, Step, decide
from shared.errors import ClaimLost, Conflict
from shared.item import Create, Delete, Replace, Stored, Unchanged
from shared.job_record import ENDED, RETENTION, Hold, JobView, Status, operation_id
from shared.outbox import Overdue, left_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from shared.acceptance import Acceptance, Acceptances
    from shared.claim import Claim
    from shared.clock import Clock
    from shared.item import Key, Write
    from shared.job_record import Commit, Reconciliation, Release
    from shared.outbox import Posting
    from shared.outcome import Failure
    from shared.table import Table
    from shared.tag import Tag


@dataclass(slots=True)
class MemoryDatabase:
    """Job records, business items and the outbox, with transactions over all three."""

    clock: Clock
    records: dict[str, JobView] = field(default_factory=dict)
    items: dict[tuple[str, Key], Stored] = field(default_factory=dict)
    outbox: dict[str, Posting] = field(default_factory=dict)
    posted: dict[str, datetime] = field(default_factory=dict)
    sent: dict[str, datetime] = field(default_factory=dict)
    parked: dict[str, str] = field(default_factory=dict)
    fences: dict[str, tuple[int, str]] = field(default_factory=dict)
    accepted_by: dict[str, str] = field(default_factory=dict)
    accepted_at: dict[str, datetime] = field(default_factory=dict)
    unfinished: set[str] = field(default_factory=set)  # accepted for an owner, and not ended since
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def claim(self, claim: Claim, now: datetime) -> Answer:
        """Hold the job for one more attempt, or say why not."""
        with self._lock:
            seen = self.records.get(claim.record)
            step = decide(seen, claim, now)
            if not isinstance(step, Step):
                return step
            names = {
                "owner": claim.owner,
                "job_type": claim.job_type,
                "idempotency_key": claim.idempotency_key,
                "operation_id": operation_id(claim.record),
            }
            fresh = JobView(
                claim.record, Status.RUNNING, 0, claim.fingerprint, claim.death, payload=claim.payload, names=names
            )
            view = seen if step is Step.INCREMENT and seen is not None else fresh
            granted = replace(
                view,
                status=Status.RUNNING,
                attempts=view.attempts + 1,
                token=claim.token,
                claim_until=claim.until,
                not_before=None,
            )
            self.records[claim.record] = granted
            return Granted(Hold(claim.record, claim.token), granted.attempts, granted.first_failure)

    def accept(self, acceptance: Acceptance, now: datetime) -> Acceptances:
        """Write the record and the message, or find what was written before."""
        record = acceptance.record
        with self._lock:
            seen = self.records.get(record)
            if seen is not None and not (seen.expires is not None and seen.expires <= now):
                return answer_for(acceptance, seen, self.accepted_by.get(record))
            names = {
                "owner": acceptance.owner,
                "job_type": acceptance.job_type,
                "idempotency_key": acceptance.idempotency_key,
                "operation_id": operation_id(record),
            }
            view = JobView(record, Status.ACCEPTED, 0, acceptance.fingerprint, payload=acceptance.payload, names=names)
            self.records[record] = view
            self.accepted_by[record] = acceptance.token
            self.accepted_at[record] = now
            self.unfinished.add(record)
            self._put_posting(acceptance.posting, now)
            return Accepted(view)

    def cancel(self, record: str, owner: str, now: datetime) -> JobView | None:
        """Cancel the owner's job if no attempt holds it, and give it as it is then."""
        with self._lock:
            view = self.records.get(record)
            if view is None or view.names.get("owner") != owner or (view.expires is not None and view.expires <= now):
                return None
            if view.status in {Status.ACCEPTED, Status.RETRYING}:
                view = replace(view, status=Status.CANCELLED, payload=None, not_before=None, expires=now + RETENTION)
                self.records[record] = view
                self.unfinished.discard(record)
            return view

    def commit(self, hold: Hold, commit: Commit, now: datetime) -> None:
        """Write everything, or nothing."""
        with self._lock:
            view = self.records.get(hold.record)
            if view is not None and view.token == hold.token and view.status is commit.status:
                return
            view = self._held(hold)
            for write in commit.writes:
                self._demand(write)
            for reconciliation in commit.reconciliations:
                self._demand_unknown(reconciliation)
            for write in commit.writes:
                self._apply(write)
            for reconciliation in commit.reconciliations:
                self._settle(reconciliation, commit.tags, now)
            for posting in commit.postings:
                self._put_posting(posting, now)
            final = commit.status is not Status.UNKNOWN
            self.unfinished.discard(hold.record)
            self.records[hold.record] = replace(
                view,
                status=commit.status,
                result=commit.result,
                tags=commit.tags,
                claim_until=None,
                payload=None if final else view.payload,
                expires=now + RETENTION if final else None,
                first_failure=view.first_failure or commit.failure,
                last_failure=commit.failure or view.last_failure,
            )

    def release(self, hold: Hold, release: Release, now: datetime) -> None:
        """Give the job back."""
        del now
        with self._lock:
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
                first_failure=view.first_failure or release.failure,
                last_failure=release.failure or view.last_failure,
            )

    def bury(self, hold: Hold, death: int, failure: Failure, now: datetime) -> None:
        """Mark the job dead-lettered."""
        del now
        with self._lock:
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
                claim_until=None,
                first_failure=view.first_failure or failure,
                last_failure=failure,
            )

    def prolong(self, hold: Hold, until: datetime, now: datetime) -> None:
        """Move the claim's deadline."""
        del now
        with self._lock:
            self.records[hold.record] = replace(self._held(hold), claim_until=until)

    def fence(self, hold: Hold, key: str) -> int:
        """Give the next number of a key."""
        with self._lock:
            self._held(hold)
            number, owner = self.fences.get(key, (0, ""))
            if owner != hold.token:
                number += 1
                self.fences[key] = (number, hold.token)
            return number

    def view(self, record: str) -> JobView | None:
        """Read a record."""
        with self._lock:
            view = self.records.get(record)
            if view is None or (view.expires is not None and view.expires <= self.clock.now()):
                return None
            return view

    def read(self, table: Table, key: Key) -> Stored | None:
        """Read an item or its tombstone."""
        with self._lock:
            return copy.deepcopy(self.items.get((table.name, key)))

    def post(self, posting: Posting, now: datetime) -> None:
        """Have a message sent, once under its id."""
        with self._lock:
            if posting.id not in self.outbox:
                self._put_posting(posting, now)

    def overdue(self, shard: int, before: datetime, now: datetime) -> Iterator[Overdue]:
        """What waits since before that moment."""
        with self._lock:
            waiting = sorted(
                (since, name)
                for name, since in self.posted.items()
                if since < before and name not in self.sent and name not in self.parked and shard_of(name) == shard
            )
        for since, name in waiting:
            posting = self.outbox[name]
            yield Overdue(replace(posting, delay=left_of(posting, since, now)), since)

    def park(self, posting: str, reason: str) -> None:
        """Keep it with its reason."""
        with self._lock:
            if posting in self.outbox:
                self.parked.setdefault(posting, reason)

    def mark_sent(self, posting: str, now: datetime) -> None:
        """Note that a posting was sent."""
        with self._lock:
            if posting in self.outbox:
                self.sent.setdefault(posting, now)

    def _put_posting(self, posting: Posting, now: datetime) -> None:
        self.outbox[posting.id] = posting
        self.posted[posting.id] = now

    def _held(self, hold: Hold) -> JobView:
        view = self.records.get(hold.record)
        if view is None or view.token != hold.token or view.status is not Status.RUNNING:
            raise ClaimLost(_LOST)
        return view

    def _demand(self, write: Write) -> None:
        stored = self.items.get((write.table.name, write.key))
        match write:
            case Create():
                fits = stored is None or stored.deleted
            case Replace() | Delete():
                fits = stored is not None and stored.version == write.seen
            case Unchanged():
                fits = (None if stored is None else stored.version) == write.seen
            case _:
                assert_never(write)
        if not fits:
            message = f"{write.table.name} {'/'.join(write.key)} has changed since it was read."
            raise Conflict(message)

    def _demand_unknown(self, reconciliation: Reconciliation) -> None:
        view = self.records.get(reconciliation.record)
        if view is None or view.status is not Status.UNKNOWN:
            message = "The job to settle is not unknown."
            raise Conflict(message)

    def _apply(self, write: Write) -> None:
        place = (write.table.name, write.key)
        stored = self.items.get(place)
        match write:
            case Create(attributes=attributes):
                self.items[place] = Stored(copy.deepcopy(dict(attributes)), 1 if stored is None else stored.version + 1)
            case Replace(attributes=attributes, seen=seen, changed=changed):
                kept = {} if stored is None or stored.deleted else dict(stored.attributes)
                written = {name: value for name, value in attributes.items() if name in changed}
                keys = dict(zip(write.table.key_names, write.key, strict=True))
                self.items[place] = Stored(copy.deepcopy({**kept, **written, **keys}), seen + 1)
            case Delete(seen=seen):
                keys = dict(zip(write.table.key_names, write.key, strict=True))
                self.items[place] = Stored(keys, seen + 1, deleted=True)
            case Unchanged():
                pass
            case _:
                assert_never(write)

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
            expires=now + RETENTION if final else None,
        )


_LOST = "Another attempt holds the job, or it has ended."
