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

from shared.backends.job_record_item import read_view, write_failure
from shared.backends.outbox import write_posting
from shared.clock import to_millis
from shared.job_record import ENDED, EXPIRY_MARGIN, RETENTION, Granted, Status, operation_id

if TYPE_CHECKING:
    from datetime import datetime

    from shared.backends.dynamodb import DynamoDBItems
    from shared.job_record import Claim, Commit, Hold, JobView, Release, Verdict
    from shared.outcome import Failure

_NAMES = {
    "#status": "status",
    "#owner": "owner",
    "#token": "attempt_token",
    "#until": "in_progress_expiration",
    "#expires": "expiration",
    "#ttl": "ttl",
    "#data": "data",
}
_RUNNABLE = (
    "attribute_not_exists(id) OR ("
    "#attempts < :max AND #death = :death"
    " AND (#fingerprint = :fingerprint OR NOT begins_with(#fingerprint, :schema))"
    " AND ((#status IN (:accepted, :retrying) AND (attribute_not_exists(#not_before) OR #not_before <= :now))"
    " OR (#status = :running AND #until < :now)))"
)
_TAKE = (
    "#status = :running, #token = :token, #until = :until, updated_at = :now_text,"
    " created_at = if_not_exists(created_at, :now_text), #owner = if_not_exists(#owner, :owner),"
    " job_type = if_not_exists(job_type, :job_type), idempotency_key = if_not_exists(idempotency_key, :key),"
    " operation_id = if_not_exists(operation_id, :operation), #fingerprint = if_not_exists(#fingerprint, :fingerprint),"
    " payload = if_not_exists(payload, :payload), schema_version = if_not_exists(schema_version, :version),"
    " #death = if_not_exists(#death, :death)"
)


class JobRecordLayer(DynamoDBPersistenceLayer):
    """Powertools' store with our conditions. `for_attempt` gives each execution an object of its own."""

    hold: Hold
    now: datetime
    claim: Claim
    commit: Commit
    release: Release
    seen: dict[str, Any] | None = None
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

    def _put_record(self, data_record: DataRecord) -> None:
        """Claim: a new record, one more attempt, or the take-over of one whose deadline has passed."""
        update = f"SET {_TAKE}, #attempts = if_not_exists(#attempts, :none) + :one REMOVE #not_before"
        try:
            answer = self._write_claim(update, _RUNNABLE, {})
        except ClientError as error:
            if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
                raise
            self.seen = error.response.get("Item")  # type: ignore[assignment]
            raise IdempotencyItemAlreadyExistsError(str(data_record.idempotency_key)) from error
        self.granted = self._granted(answer)

    def reset(self, seen: JobView) -> None:
        """Claim anew a record that has expired or whose dead letter was replayed, naming what was seen of it.

        Raises:
            IdempotencyItemAlreadyExistsError: it is not as it was seen.
        """
        stay = "#status = :seen_status AND #attempts = :seen_attempts AND #death = :seen_death"
        values = {
            ":seen_status": {"S": seen.status.value},
            ":seen_attempts": {"N": str(seen.attempts)},
            ":seen_death": {"N": str(seen.death)},
        }
        if seen.expires is None:
            stay += " AND attribute_not_exists(#expires)"
        else:
            stay += " AND #expires = :seen_expires"
            values[":seen_expires"] = {"N": str(int(seen.expires.timestamp()))}
        # Everything of the old life goes, but for when the job was first seen.
        update = (
            "SET #status = :running, #token = :token, #until = :until, updated_at = :now_text, #owner = :owner,"
            " created_at = if_not_exists(created_at, :now_text), job_type = :job_type, idempotency_key = :key,"
            " operation_id = :operation, #fingerprint = :fingerprint, payload = :payload, schema_version = :version,"
            " #death = :death, #attempts = :one"
            " REMOVE #not_before, #expires, #ttl, #data, tags, first_failure, last_failure, ended_at"
        )
        try:
            answer = self._write_claim(update, stay, values)
        except ClientError as error:
            if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
                raise
            self.seen = error.response.get("Item")  # type: ignore[assignment]
            raise IdempotencyItemAlreadyExistsError(self.hold.record) from error
        self.granted = self._granted(answer)

    def _write_claim(self, update: str, condition: str, more: dict[str, Any]) -> dict[str, Any]:
        claim = self.claim
        known = {
            ":running": {"S": Status.RUNNING.value},
            ":accepted": {"S": Status.ACCEPTED.value},
            ":retrying": {"S": Status.RETRYING.value},
            ":token": {"S": claim.token},
            ":until": {"N": str(to_millis(claim.until))},
            ":now": {"N": str(to_millis(self.now))},
            ":now_text": {"S": self.now.isoformat()},
            ":owner": {"S": claim.owner},
            ":job_type": {"S": claim.job_type},
            ":key": {"S": claim.idempotency_key},
            ":operation": {"S": operation_id(claim.record)},
            ":fingerprint": {"S": claim.fingerprint},
            ":schema": {"S": f"{claim.fingerprint.partition(':')[0]}:"},
            ":payload": {"S": claim.payload},
            ":version": {"N": str(claim.version)},
            ":death": {"N": str(claim.death)},
            ":max": {"N": str(claim.max_attempts)},
            ":none": {"N": "0"},
            ":one": {"N": "1"},
            **more,
        }
        names = {**_NAMES, **{f"#{name}": name for name in ("attempts", "death", "fingerprint", "not_before")}}
        used = f"{update} {condition}"
        answer: dict[str, Any] = self.client.update_item(
            TableName=self.table_name,
            Key=self._get_key(self.hold.record),
            UpdateExpression=update,
            ConditionExpression=condition,
            ExpressionAttributeNames={name: value for name, value in names.items() if _uses(used, name)},
            ExpressionAttributeValues={name: value for name, value in known.items() if _uses(used, name)},
            ReturnValues="ALL_NEW",
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        )["Attributes"]
        return answer

    def _granted(self, item: dict[str, Any]) -> Granted:
        view = read_view(self.hold.record, item)
        return Granted(self.hold, view.attempts, view.first_failure)

    def _update_record(self, data_record: DataRecord) -> None:  # noqa: ARG002 - Powertools' signature
        """Commit: the record's end, the unit of work and the outbox in one transaction."""
        entries = [self._end(), *(self._verdict(verdict) for verdict in self.commit.verdicts)]
        entries += [self.items.entry(write) for write in self.commit.writes]
        for posting in self.commit.postings:
            item = write_posting(posting, self.now)
            fresh = {"ConditionExpression": "attribute_not_exists(id)"}
            entries.append({"Put": {"TableName": self.outbox_table, "Item": item, **fresh}})
        self.client.transact_write_items(TransactItems=entries, ClientRequestToken=self.hold.token[:36])  # type: ignore[arg-type]

    def _end(self) -> dict[str, Any]:
        commit = self.commit
        values = {
            ":token": {"S": self.hold.token},
            ":running": {"S": Status.RUNNING.value},
            ":status": {"S": commit.status.value},
            ":now": {"S": self.now.isoformat()},
            ":tags": {"L": [{"S": tag} for tag in commit.tags]},
            ":expires": {"N": str(self._get_expiry_timestamp())},
            ":ttl": {"N": str(int((self.now + RETENTION + EXPIRY_MARGIN).timestamp()))},
        }
        sets = "#status = :status, updated_at = :now, ended_at = :now, tags = :tags"
        removes = "#until"
        if commit.status is Status.UNKNOWN:  # not final: it waits for its reconciling job and never expires
            del values[":expires"], values[":ttl"]
        else:
            sets += ", #expires = :expires, #ttl = :ttl"
            removes += ", payload"
        if commit.result is not None:
            sets += ", #data = :data"
            values[":data"] = {"S": commit.result}
        if commit.failure is not None:
            sets += ", last_failure = :failure, first_failure = if_not_exists(first_failure, :failure)"
            values[":failure"] = write_failure(commit.failure)
        return self._conditional(f"SET {sets} REMOVE {removes}", "#token = :token AND #status = :running", values)

    def _conditional(self, update: str, condition: str, values: dict[str, Any]) -> dict[str, Any]:
        used = f"{update} {condition}"
        return {
            "Update": {
                "TableName": self.table_name,
                "Key": self._get_key(self.hold.record),
                "UpdateExpression": update,
                "ConditionExpression": condition,
                "ExpressionAttributeNames": {name: value for name, value in _NAMES.items() if _uses(used, name)},
                "ExpressionAttributeValues": values,
                "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
            }
        }

    def _verdict(self, verdict: Verdict) -> dict[str, Any]:
        values = {
            ":unknown": {"S": Status.UNKNOWN.value},
            ":status": {"S": verdict.status.value},
            ":now": {"S": self.now.isoformat()},
            ":none": {"N": "0"},
        }
        sets, removes = "#status = :status, updated_at = :now, death = :none", "ended_at"
        if verdict.status in ENDED:
            values[":expires"] = {"N": str(self._get_expiry_timestamp())}
            values[":ttl"] = {"N": str(int((self.now + RETENTION + EXPIRY_MARGIN).timestamp()))}
            sets, removes = f"{sets}, #expires = :expires, #ttl = :ttl, ended_at = :now", "payload"
            del values[":none"]
            sets = sets.replace(", death = :none", "")
        if verdict.result is not None:
            sets += ", #data = :data"
            values[":data"] = {"S": verdict.result}
        entry = self._conditional(f"SET {sets} REMOVE {removes}", "#status = :unknown", values)
        entry["Update"]["Key"] = self._get_key(verdict.record)
        return entry

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
        sets = "#status = :retrying, updated_at = :now, not_before = :not_before"
        if release.gives_attempt_back:
            sets += ", attempts = attempts - :one"
            values[":one"] = {"N": "1"}
        if release.failure is not None:
            sets += ", last_failure = :failure, first_failure = if_not_exists(first_failure, :failure)"
            values[":failure"] = write_failure(release.failure)
        update = self._conditional(f"SET {sets} REMOVE #until", "#token = :token AND #status = :running", values)
        self.client.update_item(**update["Update"])

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
        }
        update = self._conditional(
            "SET #status = :status, updated_at = :now, death = :death, last_failure = :failure,"
            " first_failure = if_not_exists(first_failure, :failure) REMOVE #until",
            "#token = :token AND #status IN (:running, :retrying)",
            values,
        )
        self.client.update_item(**update["Update"])


def _uses(expression: str, name: str) -> bool:
    """Whether an expression holds the placeholder as a whole word."""
    place = expression.find(name)
    while place >= 0:
        end = place + len(name)
        if end == len(expression) or not (expression[end].isalnum() or expression[end] == "_"):
            return True
        place = expression.find(name, end)
    return False
