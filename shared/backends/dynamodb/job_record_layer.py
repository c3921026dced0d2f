"""The job record as a subclass of Powertools' idempotency store on DynamoDB.

The stock layer updates and deletes without a condition: a paused attempt that wakes up after another took over would
overwrite or delete the winner's record. Here every write names the attempt's token, and the completion is one
transaction with the unit of work. Powertools' seams carry it: `_put_record` claims, `_update_record` commits,
`_delete_record` gives back; the hashed key, the expiry and the clock are ours.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools.utilities.idempotency.exceptions import IdempotencyItemAlreadyExistsError
from aws_lambda_powertools.utilities.idempotency.persistence.datarecord import STATUS_CONSTANTS, DataRecord
from aws_lambda_powertools.utilities.idempotency.persistence.dynamodb import DynamoDBPersistenceLayer
from botocore.exceptions import ClientError

from shared.backends.dynamodb.job_record_claims import begin_anew, take
from shared.backends.dynamodb.job_record_ends import HELD, ended, settled, stepped
from shared.backends.dynamodb.job_record_item import (
    LOOK_AT,
    OPEN,
    UNENDED,
    conditional,
    read_view,
    watched_from,
    write_failure,
    write_progress,
)
from shared.backends.dynamodb.outbox import write_posting
from shared.backends.dynamodb.parts import write_block, write_part
from shared.claim import Granted, Step
from shared.claimed import claimed
from shared.clock import to_millis
from shared.job_record import ENDED, LOST_AFTER, RETENTION, Status

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from shared.backends.dynamodb.items import DynamoDBItems
    from shared.claim import Claim
    from shared.commit import Checkpoint, Commit, Progress, Release
    from shared.job_record import Hold, JobView
    from shared.message import Message
    from shared.outcome import Failure
    from shared.parts import Part


_NOTED = "failures = list_append(if_not_exists(failures, :no_failures), :failures)"


def _noted(failure: Failure) -> dict[str, Any]:
    """The values that add a failure to those of the attempts before."""
    return {":no_failures": {"L": []}, ":failures": {"L": [write_failure(failure)]}}


class JobRecordLayer(DynamoDBPersistenceLayer):
    """Powertools' store with our conditions. `for_attempt` gives each execution an object of its own."""

    hold: Hold
    now: datetime
    claim: Claim
    commit: Commit
    release: Release
    seen: JobView | None = None
    granted: Granted

    def __init__(self, client: Any, table_name: str, items: DynamoDBItems, outbox_table: str) -> None:  # noqa: ANN401
        """Use this client and table; business items and outbox items join the transaction."""
        super().__init__(table_name=table_name, boto3_client=client)
        self.items = items
        self.outbox_table = outbox_table

    def for_attempt(self, hold: Hold, now: datetime) -> JobRecordLayer:
        """The same store for one execution: shares the client, holds the token."""
        layer = copy.copy(self)
        layer.hold = hold
        layer.now = now
        return layer

    def _get_hashed_idempotency_key(self, data: Any) -> str:  # noqa: ANN401, ARG002 - Powertools' signature
        return self.hold.record

    def _get_hashed_payload(self, data: Any) -> str:  # noqa: ANN401, ARG002 - Powertools' signature
        return self.claim.fingerprint

    def _get_expiry_timestamp(self) -> int:
        return int((self.now + RETENTION).timestamp())

    def _item_to_data_record(self, item: dict[str, Any]) -> DataRecord:
        view = read_view(self.hold.record, item)
        status = {Status.RUNNING: "INPROGRESS"}.get(view.status, "COMPLETED" if view.status in ENDED else "EXPIRED")
        return DataRecord(
            idempotency_key=view.record,
            status=STATUS_CONSTANTS[status],
            expiry_timestamp=None if view.expires is None else int(view.expires.timestamp()),
            in_progress_expiry_timestamp=None if view.claim_until is None else to_millis(view.claim_until),
            response_data=view.result or "",
            payload_hash=view.fingerprint,
        )

    def _put_record(self, data_record: DataRecord) -> None:  # noqa: ARG002 - Powertools' signature
        """Claim: a new record, one more attempt, or the take-over of one whose deadline has passed."""
        self._write_claim(take(self.claim, self.now), Step.INCREMENT)

    def reset(self, seen: JobView) -> None:
        """Claim anew a record whose life is over, if it is as it was seen.

        Raises:
            IdempotencyItemAlreadyExistsError: it is not.
        """
        self._write_claim(begin_anew(self.claim, self.now, seen), Step.RESET)

    def _write_claim(self, update: dict[str, Any], step: Step) -> None:
        """Write the claim; keeps the grant, or what was seen of the record that stood in its way.

        DynamoDB gives the record as it was: of a new job nothing, which costs nothing to read.
        """
        try:
            answer = self.client.update_item(
                TableName=self.table_name,
                Key=self._get_key(self.hold.record),
                ReturnValues="ALL_OLD",
                **update,
            )
        except ClientError as error:
            if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
                raise
            item: Any = error.response.get("Item")
            # An item without a state is no job record (yet): the claim is tried again.
            self.seen = read_view(self.hold.record, item) if item and "status" in item else None
            raise IdempotencyItemAlreadyExistsError(self.hold.record) from error
        before = answer.get("Attributes")
        seen = read_view(self.hold.record, before) if before else None
        self.granted = Granted(self.hold, claimed(step, seen, self.claim, self.now, LOST_AFTER), self.now)

    def _update_record(self, data_record: DataRecord) -> None:  # noqa: ARG002 - Powertools' signature
        """Commit: the record's end, the unit of work and the outbox in one transaction."""
        others = [
            self._at(each.record, settled(each, self.commit.tags, self.now)) for each in self.commit.reconciliations
        ]
        end = self._at(self.hold.record, ended(self.hold, self.commit, self.now))
        self._transact([end, *others], self.commit, self.hold.token[:36])

    def write_step(self, checkpoint: Checkpoint, *, although_cancelling: bool = False) -> None:
        """A checkpoint: the record still held, what the step has staged and the outbox in one transaction."""
        held = self._at(
            self.hold.record, stepped(self.hold, checkpoint, self.now, although_cancelling=although_cancelling)
        )
        # Each transaction of an attempt has a name of its own.
        name = f"{self.hold.token[:24]}{'+' if although_cancelling else '-'}{checkpoint.number:011}"
        self._transact([held, *self._split(checkpoint.parts)], checkpoint, name)

    def _split(self, parts: Sequence[Part]) -> list[dict[str, Any]]:
        """The entries of a checkpoint's parts: their block, and for each its record and its message."""
        if not parts:
            return []
        records = [write_block(parts, self.now), *(write_part(part, self.now) for part in parts)]
        fresh = {"ConditionExpression": "attribute_not_exists(id)"}
        return [
            *({"Put": {"TableName": self.table_name, "Item": item, **fresh}} for item in records),
            *(
                {"Put": {"TableName": self.outbox_table, "Item": write_posting(part.posting, self.now), **fresh}}
                for part in parts
            ),
        ]

    def _transact(self, records: list[dict[str, Any]], staged: Commit | Checkpoint, name: str) -> None:
        entries = [*records, *(self.items.entry(write) for write in staged.writes)]
        for number, posting in enumerate(staged.postings):
            item = write_posting(posting, self.now, number)
            fresh = {"ConditionExpression": "attribute_not_exists(id)"}
            entries.append({"Put": {"TableName": self.outbox_table, "Item": item, **fresh}})
        self.client.transact_write_items(TransactItems=entries, ClientRequestToken=name)  # type: ignore[arg-type]

    def _conditional(self, record: str, update: str, condition: str, values: dict[str, Any]) -> dict[str, Any]:
        return self._at(record, conditional(update, condition, values))

    def _at(self, record: str, expressions: dict[str, Any]) -> dict[str, Any]:
        return {"Update": {"TableName": self.table_name, "Key": self._get_key(record), **expressions}}

    def _delete_record(self, data_record: DataRecord) -> None:  # noqa: ARG002 - Powertools' signature
        """Give back: the record stays, as retrying, with what went wrong and when the next attempt may begin."""
        release = self.release
        values = {
            ":token": {"S": self.hold.token},
            ":running": {"S": Status.RUNNING.value},
            ":retrying": {"S": Status.RETRYING.value},
            ":now": {"S": self.now.isoformat()},
            ":not_before": {"N": str(to_millis(release.not_before))},
        }
        watched = watched_from(self.hold.record, max(self.now, release.not_before))
        values |= {":shard": watched[UNENDED], ":look_at": watched[LOOK_AT]}
        sets = (
            "#status = :retrying, updated_at = :now, not_before = :not_before,"
            f" {UNENDED} = :shard, {LOOK_AT} = :look_at"
        )
        if release.gives_attempt_back:
            sets += ", attempts = attempts - :one"
            values[":one"] = {"N": "1"}
        if release.failure is not None:
            sets += ", last_failure = :failure, first_failure = if_not_exists(first_failure, :failure)"
            values[":failure"] = write_failure(release.failure)
            if not release.gives_attempt_back:
                sets += f", {_NOTED}"
                values |= _noted(release.failure)
        update = self._conditional(self.hold.record, f"SET {sets} REMOVE #until", HELD, values)
        self.client.update_item(**update["Update"])

    def prolong(self, until: datetime) -> None:
        """Move the claim's deadline, if the attempt still holds it."""
        values = {
            ":token": {"S": self.hold.token},
            ":running": {"S": Status.RUNNING.value},
            ":now": {"S": self.now.isoformat()},
            ":until": {"N": str(to_millis(until))},
        }
        update = self._conditional(self.hold.record, "SET #until = :until, updated_at = :now", HELD, values)
        self.client.update_item(**update["Update"])

    def note_progress(self, progress: Progress) -> None:
        """Tell how far the job is, if the attempt still holds it."""
        values = {
            ":token": {"S": self.hold.token},
            ":running": {"S": Status.RUNNING.value},
            ":progress": write_progress(progress),
        }
        update = self._conditional(self.hold.record, "SET progress = :progress", HELD, values)
        self.client.update_item(**update["Update"])

    def bury_unbegun(self, message: Message, failure: Failure, now: datetime) -> None:
        """Mark an accepted job dead-lettered of which no attempt ever began."""
        update = (
            "SET #status = :status, updated_at = :now, ended_at = :now, #death = #death + :one, last_failure = :failure,"
            f" first_failure = if_not_exists(first_failure, :failure) REMOVE {OPEN}"
        )
        values = {
            ":status": {"S": Status.DEAD_LETTERED.value},
            ":accepted": {"S": Status.ACCEPTED.value},
            ":now": {"S": now.isoformat()},
            ":one": {"N": "1"},
            ":failure": write_failure(failure),
            ":job_type": {"S": message.job_type},
            ":key": {"S": message.idempotency_key},
            ":payload": {"S": message.payload},
        }
        unbegun = (
            "#status = :accepted AND attribute_not_exists(begun_at) AND job_type = :job_type AND idempotency_key = :key"
            " AND payload = :payload"
        )
        self.client.update_item(**self._conditional(message.record or "", update, unbegun, values)["Update"])

    def bury(self, death: int, failure: Failure) -> None:
        """Mark dead-lettered, if the record's last attempt is still the one held."""
        values = {
            ":token": {"S": self.hold.token},
            ":running": {"S": Status.RUNNING.value},
            ":retrying": {"S": Status.RETRYING.value},
            ":status": {"S": Status.DEAD_LETTERED.value},
            ":now": {"S": self.now.isoformat()},
            ":death": {"N": str(death)},
            ":failure": write_failure(failure),
            **_noted(failure),
        }
        update = self._conditional(
            self.hold.record,
            "SET #status = :status, updated_at = :now, ended_at = :now, death = :death, last_failure = :failure,"
            f" {_NOTED}, first_failure = if_not_exists(first_failure, :failure) REMOVE #until, {OPEN}",
            "#token = :token AND #status IN (:running, :retrying)",
            values,
        )
        self.client.update_item(**update["Update"])
