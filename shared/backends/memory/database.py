"""The twin of DynamoDB, in memory: job records, items and the outbox, with transactions over all three.

It passes the same conformance suite as the real one.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from shared.backends.memory.acceptances import MemoryAcceptances
from shared.backends.memory.items import MemoryItems
from shared.backends.memory.parts import MemoryParts
from shared.backends.memory.unended import MemoryUnended
from shared.claim import Answer, Granted, Step, decide
from shared.claimed import claimed
from shared.errors import CancelAsked, ClaimLost, Conflict
from shared.job_record import ENDED, RETENTION, Hold, JobView, Status

if TYPE_CHECKING:
    from datetime import datetime

    from shared.claim import Claim
    from shared.clock import Clock
    from shared.commit import Checkpoint, Commit, Progress, Reconciliation, Release
    from shared.outcome import Failure
    from shared.tag import Tag


@dataclass
class MemoryDatabase(MemoryItems, MemoryAcceptances, MemoryUnended, MemoryParts):
    """Job records, business items and the outbox, with transactions over all three."""

    clock: Clock
    fences: dict[str, tuple[int, str]] = field(default_factory=dict)

    def claim(self, claim: Claim, now: datetime) -> Answer:
        """Hold the job for one more attempt, or say why not."""
        with self.lock:
            seen = self.records.get(claim.record)
            step = decide(seen, claim, now)
            if not isinstance(step, Step):
                return step
            granted = claimed(step, seen, claim, now, self.lost_after)
            self.records[claim.record] = granted
            return Granted(Hold(claim.record, claim.token), granted, now)

    def commit(self, hold: Hold, commit: Commit, now: datetime) -> None:
        """Write everything, or nothing."""
        with self.lock:
            view = self.records.get(hold.record)
            if view is not None and view.token == hold.token and view.status is commit.status:
                return
            view = self._held(hold)
            for reconciliation in commit.reconciliations:
                self._demand_unknown(reconciliation)
            self._write(commit, now)
            for reconciliation in commit.reconciliations:
                self._settle(reconciliation, commit.tags, now)
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
                checkpoint=None if final else view.checkpoint,
                checkpoint_tags=() if final else view.checkpoint_tags,
                progress=commit.progress or view.progress,
                tally=commit.tally or view.tally,
            )

    def checkpoint(self, hold: Hold, checkpoint: Checkpoint, now: datetime) -> None:
        """Write a step, or nothing."""
        with self.lock:
            view = self._held(hold)
            if view.checkpoints == checkpoint.number:
                return
            if view.checkpoints > checkpoint.number:
                raise ClaimLost(_LOST)
            self._write(checkpoint, now)
            self.put_parts(checkpoint.parts, now)
            self.records[hold.record] = replace(
                view,
                checkpoints=checkpoint.number,
                checkpoint=checkpoint.state,
                checkpoint_tags=checkpoint.tags,
                progress=checkpoint.progress or view.progress,
                split=checkpoint.split or view.split,
                stepped_at=now,
                intents={name: token for name, token in view.intents.items() if name not in checkpoint.settled},
            )
            if view.cancelling:
                message = "The client has asked to end the job."
                raise CancelAsked(message)

    def note_progress(self, hold: Hold, progress: Progress) -> None:
        """Tell how far the job is."""
        with self.lock:
            self.records[hold.record] = replace(self._held(hold), progress=progress)

    def _write(self, staged: Commit | Checkpoint, now: datetime) -> None:
        """Write what is staged, if all that was read is as it was."""
        for write in staged.writes:
            self.demand(write)
        for write in staged.writes:
            self.apply(write)
        for posting in staged.postings:
            self.put_posting(posting, now)

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
                failures=view.failures if release.gives_attempt_back else _with(view, release.failure),
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
                failures=_with(view, failure),
            )

    def prolong(self, hold: Hold, until: datetime, now: datetime) -> None:
        """Move the claim's deadline."""
        del now
        with self.lock:
            self.records[hold.record] = replace(self._held(hold), claim_until=until)

    def intend(self, hold: Hold, dependency: str) -> bool:
        """Note that this attempt is about to call."""
        with self.lock:
            view = self._held(hold)
            self.records[hold.record] = replace(view, intents={dependency: hold.token, **view.intents})
            return self.records[hold.record].intents[dependency] == hold.token

    def withdraw(self, hold: Hold, dependency: str) -> None:
        """Take this attempt's note back."""
        with self.lock:
            view = self._held(hold)
            left = {name: token for name, token in view.intents.items() if (name, token) != (dependency, hold.token)}
            self.records[hold.record] = replace(view, intents=left)

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
            return None if view is None or view.has_expired(self.clock.now()) else view

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
            intents=view.intents if final else {},
            begun_at=view.begun_at if final else None,
            stepped_at=view.stepped_at if final else None,
            checkpoint=None if final else reconciliation.checkpoint or view.checkpoint,
            checkpoints=view.checkpoints + (reconciliation.checkpoint is not None),
        )


def _with(view: JobView, failure: Failure | None) -> tuple[Failure, ...]:
    """The failures of the attempts, and this one unless it is noted already."""
    if failure is None or failure in view.failures[-1:]:
        return view.failures
    return (*view.failures, failure)


_LOST = "Another attempt holds the job, or it has ended."
