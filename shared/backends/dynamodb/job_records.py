"""The store of job records in DynamoDB: resolves races and lost replies around the conditional writes of the layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools.utilities.idempotency.exceptions import IdempotencyItemAlreadyExistsError
from aws_lambda_powertools.utilities.idempotency.persistence.datarecord import DataRecord

from shared.backends.aws import translated
from shared.backends.dynamodb.conditional_writes import update
from shared.backends.dynamodb.intents import DynamoDBIntents
from shared.backends.dynamodb.job_record_conditions import demand_held
from shared.backends.dynamodb.job_record_ends import buried, buried_unbegun, progressed, prolonged
from shared.backends.dynamodb.job_record_item import read_view
from shared.backends.dynamodb.transactions import Busy
from shared.claim import Answer, Step, decide
from shared.errors import CancelAsked, ClaimLost, Conflict, NoAnswer, StoreUnavailable, Unavailable
from shared.job_record import Hold, JobView, Status

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from random import Random

    from shared.backends.dynamodb.fences import DynamoDBFences
    from shared.backends.dynamodb.job_record_layer import JobRecordLayer
    from shared.backends.dynamodb.transactions import Cancelled
    from shared.claim import Claim
    from shared.clock import Clock
    from shared.commit import Checkpoint, Commit, Progress, Release
    from shared.message import Message
    from shared.outcome import Failure

CLAIMS = 3  # a claim that keeps losing races is postponed


@dataclass(frozen=True, slots=True)
class DynamoDBJobRecords:
    """The store of job records."""

    layer: JobRecordLayer
    fences: DynamoDBFences
    clock: Clock
    random: Random

    def claim(self, claim: Claim, now: datetime) -> Answer:
        """Hold the job for one more attempt, or say why not."""
        layer = self._attempt(Hold(claim.record, claim.token), now)
        layer.claim = claim
        left = claim.until - now
        step: Step = Step.FRESH
        seen: JobView | None = None
        for _ in range(CLAIMS):
            try:
                if step is Step.RESET and seen is not None:
                    layer.reset(seen)
                else:
                    layer.save_inprogress(
                        data={"idempotency_key": claim.idempotency_key},
                        remaining_time_in_millis=int(left.total_seconds() * 1000),
                    )
            except IdempotencyItemAlreadyExistsError:
                seen = layer.seen
            except Unavailable:
                seen = self._read(claim.record)
                if seen is None or seen.token != claim.token:
                    raise
            else:
                return layer.granted
            answer = decide(seen, claim, now)
            if not isinstance(answer, Step):
                return answer
            step = answer
        message = "The job record changes too fast to claim it."
        raise StoreUnavailable(message, dependency="dynamodb")

    def commit(self, hold: Hold, commit: Commit, now: datetime) -> None:
        """Write everything in one transaction."""
        layer = self._attempt(hold, now)
        layer.commit = commit

        def write() -> Cancelled | None:
            layer._update_record(DataRecord(hold.record))  # noqa: SLF001 - our own override of Powertools' seam
            return layer.cancelled

        self._transact(hold, write, lambda view: view.status is commit.status)

    def checkpoint(self, hold: Hold, checkpoint: Checkpoint, now: datetime) -> None:
        """Write a step in one transaction."""
        layer = self._attempt(hold, now)

        def is_done(view: JobView) -> bool:
            return view.status is Status.RUNNING and view.checkpoints == checkpoint.number

        try:
            self._transact(hold, lambda: layer.write_step(checkpoint), is_done)
        except CancelAsked:
            # What the step did outside is done: it is written, and no other begins.
            self._transact(hold, lambda: layer.write_step(checkpoint, although_cancelling=True), is_done)
            raise

    def note_progress(self, hold: Hold, progress: Progress) -> None:
        """Tell how far the job is."""
        self._change(hold, progressed(hold, progress), None)

    def release(self, hold: Hold, release: Release, now: datetime) -> None:
        """Give the job back for a later attempt."""
        layer = self._attempt(hold, now)
        layer.release = release
        layer.delete_record(data={}, exception=ClaimLost())
        demand_held(hold, layer.in_the_way, Status.RETRYING)

    def bury(self, hold: Hold, death: int, failure: Failure, now: datetime) -> None:
        """Mark the job dead-lettered."""
        self._change(hold, buried(hold, death, failure, now), Status.DEAD_LETTERED)

    def bury_unbegun(self, message: Message, failure: Failure, now: datetime) -> None:
        """Mark an accepted job dead-lettered of which no attempt ever began."""
        place = {"TableName": self.layer.table_name, "Key": {"id": {"S": message.record or ""}}}
        update(self.layer.client, **place, **buried_unbegun(message, failure, now))

    def prolong(self, hold: Hold, until: datetime, now: datetime) -> None:
        """Move the claim's deadline."""
        self._change(hold, prolonged(hold, until, now), None)

    def intend(self, hold: Hold, dependency: str) -> bool:
        """Note that this attempt is about to call; False if another attempt noted it."""
        return self._intents.intend(hold, dependency)

    def withdraw(self, hold: Hold, dependency: str) -> None:
        """Take this attempt's note back."""
        self._intents.withdraw(hold, dependency)

    def fence(self, hold: Hold, key: str) -> int:
        """Give the next number of a key."""
        return self.fences.next(hold, key)

    def view(self, record: str) -> JobView | None:
        """Read a record, consistently."""
        view = self._read(record)
        return None if view is None or view.has_expired(self.clock.now()) else view

    @property
    def _intents(self) -> DynamoDBIntents:
        return DynamoDBIntents(self.layer.client, self.layer.table_name)

    def _attempt(self, hold: Hold, now: datetime) -> JobRecordLayer:
        return self.layer.for_attempt(hold, now, self.clock, self.random)

    def _change(self, hold: Hold, expressions: dict[str, Any], done: Status | None) -> None:
        """Change the record of an attempt, which a lost reply may have done to `done` before."""
        place = {"TableName": self.layer.table_name, "Key": {"id": {"S": hold.record}}}
        demand_held(hold, update(self.layer.client, **place, **expressions), done)

    def _transact(self, hold: Hold, write: Callable[[], Cancelled | None], is_done: Callable[[JobView], bool]) -> None:
        """Run a transaction of this attempt; `is_done` tells by the record, which names its token, whether an earlier try did."""
        try:
            cancelled = write()
        except Busy:
            raise
        except Unavailable as error:
            if not self._was_written(hold, is_done, error):
                raise
            return
        if cancelled is not None:
            _demand_own(hold, is_done, cancelled)

    def _read(self, record: str) -> JobView | None:
        with translated("dynamodb"):
            answer = self.layer.client.get_item(
                TableName=self.layer.table_name, Key={"id": {"S": record}}, ConsistentRead=True
            )
        item = answer.get("Item")
        return None if item is None else read_view(record, item)

    def _was_written(self, hold: Hold, is_done: Callable[[JobView], bool], error: Unavailable) -> bool:
        """Look whether a transaction that got no answer is there.

        Raises:
            NoAnswer: this got no answer either.
        """
        try:
            view = self._read(hold.record)
        except Unavailable:
            raise NoAnswer(str(error), dependency="dynamodb") from error
        return view is not None and view.token == hold.token and is_done(view)


def _demand_own(hold: Hold, is_done: Callable[[JobView], bool], cancelled: Cancelled) -> None:
    """Return if an earlier try of this attempt's has written its transaction.

    Raises:
        CancelAsked: its client wants it to end.
        ClaimLost: the record is no longer ours.
        Conflict: something read has changed.
    """
    item, *others = cancelled.in_the_way
    if item is None:
        place = next(number for number, other in enumerate(others, 1) if other is not None)
        message = f"Item {place} of the commit has changed since it was read."
        raise Conflict(message)
    is_ours = item.get("attempt_token", {}).get("S") == hold.token
    if is_ours and is_done(read_view(hold.record, item)):
        return
    if is_ours and "cancelling" in item and item["status"]["S"] == Status.RUNNING.value:
        message = "The client has asked to end the job."
        raise CancelAsked(message)
    message = "Another attempt holds the job, or it was cancelled."
    raise ClaimLost(message)
