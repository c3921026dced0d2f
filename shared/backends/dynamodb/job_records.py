"""The store of job records in DynamoDB: resolves races and lost replies around the conditional writes of the layer."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools.utilities.idempotency.exceptions import IdempotencyItemAlreadyExistsError
from aws_lambda_powertools.utilities.idempotency.persistence.datarecord import DataRecord
from botocore.exceptions import ClientError

from shared.backends.aws import translated
from shared.backends.dynamodb.intents import DynamoDBIntents
from shared.backends.dynamodb.job_record_item import read_view
from shared.claim import Answer, Step, decide
from shared.errors import CancelAsked, ClaimLost, Conflict, NoAnswer, Refused, StoreUnavailable, Unavailable
from shared.job_record import Hold, JobView, Status

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from random import Random

    from shared.backends.dynamodb.fences import DynamoDBFences
    from shared.backends.dynamodb.job_record_layer import JobRecordLayer
    from shared.claim import Claim
    from shared.clock import Clock
    from shared.commit import Checkpoint, Commit, Progress, Release
    from shared.message import Message
    from shared.outcome import Failure

CLAIMS = 3  # a claim that keeps losing races is postponed
COMMITS = 3  # tries of a transaction that others get in the way of
COMMIT_WAIT = timedelta(milliseconds=50)
BUSY = frozenset({"TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"})
CONDITION_FAILED = "ConditionalCheckFailed"


@dataclass(frozen=True, slots=True)
class DynamoDBJobRecords:
    """The store of job records."""

    layer: JobRecordLayer
    fences: DynamoDBFences
    clock: Clock
    random: Random

    def claim(self, claim: Claim, now: datetime) -> Answer:
        """Hold the job for one more attempt, or say why not."""
        layer = self.layer.for_attempt(Hold(claim.record, claim.token), now)
        layer.claim = claim
        left = claim.until - now
        step: Step = Step.FRESH
        seen: JobView | None = None
        for _ in range(CLAIMS):
            try:
                with translated("dynamodb"):
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
        layer = self.layer.for_attempt(hold, now)
        layer.commit = commit
        # Our own override of Powertools' seam.
        write = partial(layer._update_record, DataRecord(hold.record))  # noqa: SLF001
        self._transact(hold, write, lambda view: view.status is commit.status)

    def checkpoint(self, hold: Hold, checkpoint: Checkpoint, now: datetime) -> None:
        """Write a step in one transaction."""
        write = partial(self.layer.for_attempt(hold, now).write_step, checkpoint)

        def is_done(view: JobView) -> bool:
            return view.status is Status.RUNNING and view.checkpoints == checkpoint.number

        try:
            self._transact(hold, write, is_done)
        except CancelAsked:
            # What the step did outside is done: it is written, and no other begins.
            self._transact(hold, partial(write, although_cancelling=True), is_done)
            raise

    def note_progress(self, hold: Hold, progress: Progress, now: datetime) -> None:
        """Tell how far the job is."""
        layer = self.layer.for_attempt(hold, now)
        with translated("dynamodb"), _held(hold, None):
            layer.note_progress(progress)

    def _transact(self, hold: Hold, write: Callable[[], None], is_done: Callable[[JobView], bool]) -> None:
        """Run a transaction of this attempt; `is_done` tells by the record, which names its token, whether an earlier try did."""
        for left in reversed(range(COMMITS)):
            try:
                with translated("dynamodb"):
                    write()
            except ClientError as error:
                if error.response["Error"]["Code"] != "TransactionCanceledException":
                    raise
                if self._cancelled(hold, is_done, error, last=not left):
                    return
            except Unavailable as error:
                if self._was_written(hold, is_done, error):
                    return
                raise
            else:
                return
            self.clock.sleep(COMMIT_WAIT.total_seconds() * 2 ** (COMMITS - left) * self.random.random())

    def release(self, hold: Hold, release: Release, now: datetime) -> None:
        """Give the job back for a later attempt."""
        layer = self.layer.for_attempt(hold, now)
        layer.release = release
        with translated("dynamodb"), _held(hold, Status.RETRYING):
            layer.delete_record(data={}, exception=ClaimLost())

    def bury(self, hold: Hold, death: int, failure: Failure, now: datetime) -> None:
        """Mark the job dead-lettered."""
        layer = self.layer.for_attempt(hold, now)
        with translated("dynamodb"), _held(hold, Status.DEAD_LETTERED):
            layer.bury(death, failure)

    def bury_unbegun(self, message: Message, failure: Failure, now: datetime) -> None:
        """Mark an accepted job dead-lettered of which no attempt ever began."""
        with translated("dynamodb"), contextlib.suppress(self.layer.client.exceptions.ConditionalCheckFailedException):
            self.layer.bury_unbegun(message, failure, now)

    def prolong(self, hold: Hold, until: datetime, now: datetime) -> None:
        """Move the claim's deadline."""
        layer = self.layer.for_attempt(hold, now)
        with translated("dynamodb"), _held(hold, None):
            layer.prolong(until)

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
        if view is None or (view.expires is not None and view.expires <= self.clock.now()):
            return None
        return view

    @property
    def _intents(self) -> DynamoDBIntents:
        return DynamoDBIntents(self.layer.client, self.layer.table_name)

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

    @staticmethod
    def _cancelled(hold: Hold, is_done: Callable[[JobView], bool], error: ClientError, *, last: bool) -> bool:
        """Read the reasons: True if our own earlier try did it, False if another try may.

        Raises:
            CancelAsked: its client wants it to end.
            ClaimLost: the record is no longer ours.
            Conflict: something read has changed.
            Refused: DynamoDB refuses a value.
            Unavailable: others got in the way, and this was the last try.
        """
        reasons: list[dict[str, Any]] = error.response.get("CancellationReasons", [])  # type: ignore[assignment]
        codes = [reason.get("Code", "None") for reason in reasons]
        if codes and codes[0] == CONDITION_FAILED:
            item = reasons[0].get("Item", {})
            is_ours = item.get("attempt_token", {}).get("S") == hold.token
            if is_ours and is_done(read_view(hold.record, item)):
                return True
            if is_ours and "cancelling" in item and item["status"]["S"] == Status.RUNNING.value:
                message = "The client has asked to end the job."
                raise CancelAsked(message) from error
            message = "Another attempt holds the job, or it was cancelled."
            raise ClaimLost(message) from error
        if "ValidationError" in codes or "ItemCollectionSizeLimitExceeded" in codes:
            message = f"DynamoDB refuses the commit ({', '.join(codes)})."
            raise Refused(message) from error
        if CONDITION_FAILED in codes:
            message = f"Item {codes.index(CONDITION_FAILED)} of the commit has changed since it was read."
            raise Conflict(message) from error
        if last or not BUSY.intersection(codes):
            message = f"DynamoDB is busy with the same items ({', '.join(codes)})."
            raise StoreUnavailable(message, dependency="dynamodb") from error
        return False


class _held:  # noqa: N801 - reads as `with _held(...)`
    """Turns a failed condition into ClaimLost, unless it was our own earlier try that changed the record to `done`."""

    def __init__(self, hold: Hold, done: Status | None) -> None:
        self._hold = hold
        self._done = done

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, ClientError):
            return False
        if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
            return False
        item: dict[str, Any] = error.response.get("Item", {})  # type: ignore[assignment]
        is_ours = item.get("attempt_token", {}).get("S") == self._hold.token
        if is_ours and self._done is not None and item["status"]["S"] == self._done.value:
            return True
        message = "Another attempt holds the job, or it has ended."
        raise ClaimLost(message) from error
