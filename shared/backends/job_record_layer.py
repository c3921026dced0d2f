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

from shared.backends.job_record_item import UNFINISHED_OF, read_view, write_failure, write_tag
from shared.backends.outbox import write_posting
from shared.claim import Granted
from shared.clock import to_millis
from shared.job_record import ENDED, EXPIRY_MARGIN, RETENTION, Status, operation_id

if TYPE_CHECKING:
    from datetime import datetime

    from shared.backends.dynamodb import DynamoDBItems
    from shared.claim import Claim
    from shared.job_record import Commit, Hold, JobView, Reconciliation, Release
    from shared.outcome import Failure

_NAMES = {
    "#status": "status",
    "#owner": "owner",
    "#token": "attempt_token",
    "#until": "in_progress_expiration",
    "#expires": "expiration",
    "#ttl": "ttl",
    "#data": "data",
    "#attempts": "attempts",
    "#death": "death",
    "#fingerprint": "fingerprint",
    "#not_before": "not_before",
}
_NEXT = (
    "#attempts < :max AND #death = :death"
    " AND (#fingerprint = :fingerprint OR NOT begins_with(#fingerprint, :schema))"
    " AND ((#status IN (:accepted, :retrying) AND (attribute_not_exists(#not_before) OR #not_before <= :now))"
    " OR (#status = :running AND #until < :now))"
)
_RUNNABLE = f"attribute_not_exists(id) OR ({_NEXT})"
_ACCEPTED = f"job_type = :job_type AND idempotency_key = :key AND {_NEXT}"  # written by the front door, and of this job
_TAKE = (
    "#status = :running, #token = :token, #until = :until, updated_at = :now_text,"
    " created_at = if_not_exists(created_at, :now_text), #owner = if_not_exists(#owner, :owner),"
    " job_type = if_not_exists(job_type, :job_type), idempotency_key = if_not_exists(idempotency_key, :key),"
    " operation_id = if_not_exists(operation_id, :operation), #fingerprint = if_not_exists(#fingerprint, :fingerprint),"
    " payload = if_not_exists(payload, :payload), schema_version = if_not_exists(schema_version, :version),"
    " #death = if_not_exists(#death, :death)"
)
# Everything of the old life goes, but for when the job was first seen.
_BEGIN_ANEW = (
    "SET #status = :running, #token = :token, #until = :until, updated_at = :now_text, #owner = :owner,"
    " created_at = if_not_exists(created_at, :now_text), job_type = :job_type, idempotency_key = :key,"
    " operation_id = :operation, #fingerprint = :fingerprint, payload = :payload, schema_version = :version,"
    " #death = :death, #attempts = :one"
    " REMOVE #not_before, #expires, #ttl, #data, tags, first_failure, last_failure, ended_at"
)


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
        take = f"SET {_TAKE}, #attempts = if_not_exists(#attempts, :none) + :one REMOVE #not_before"
        self._write_claim(take, _ACCEPTED if self.claim.accepted else _RUNNABLE, {})

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
        if seen.token is None:
            stay += " AND attribute_not_exists(#token)"
        else:
            stay += " AND #token = :seen_token"
            values[":seen_token"] = {"S": seen.token}
        if seen.expires is None:
            stay += " AND attribute_not_exists(#expires)"
        else:
            stay += " AND #expires = :seen_expires"
            values[":seen_expires"] = {"N": str(int(seen.expires.timestamp()))}
        self._write_claim(_BEGIN_ANEW, stay, values)

    def _write_claim(self, update: str, condition: str, more: dict[str, Any]) -> None:
        """Write the claim; keeps the grant, or what was seen of the record that stood in its way."""
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
        used = f"{update} {condition}"
        try:
            answer = self.client.update_item(
                TableName=self.table_name,
                Key=self._get_key(self.hold.record),
                UpdateExpression=update,
                ConditionExpression=condition,
                ExpressionAttributeNames={name: value for name, value in _NAMES.items() if _uses(used, name)},
                ExpressionAttributeValues={name: value for name, value in known.items() if _uses(used, name)},
                ReturnValues="ALL_NEW",
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
        except ClientError as error:
            if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
                raise
            item: Any = error.response.get("Item")
            # An item without a state is no job record (yet): the claim is tried again.
            self.seen = read_view(self.hold.record, item) if item and "status" in item else None
            raise IdempotencyItemAlreadyExistsError(self.hold.record) from error
        view = read_view(self.hold.record, answer["Attributes"])
        self.granted = Granted(self.hold, view.attempts, view.first_failure)

    def _update_record(self, data_record: DataRecord) -> None:  # noqa: ARG002 - Powertools' signature
        """Commit: the record's end, the unit of work and the outbox in one transaction."""
        entries = [
            self._end(),
            *(self._reconciliation(reconciliation) for reconciliation in self.commit.reconciliations),
        ]
        entries += [self.items.entry(write) for write in self.commit.writes]
        for posting in self.commit.postings:
            item = write_posting(posting, self.now)
            fresh = {"ConditionExpression": "attribute_not_exists(id)"}
            entries.append({"Put": {"TableName": self.outbox_table, "Item": item, **fresh}})
        self.client.transact_write_items(TransactItems=entries, ClientRequestToken=self.hold.token[:36])  # type: ignore[arg-type]

    def _end(self) -> dict[str, Any]:
        commit = self.commit
        sets = ["#status = :status", "updated_at = :now", "ended_at = :now", "tags = :tags"]
        values: dict[str, Any] = {
            ":token": {"S": self.hold.token},
            ":running": {"S": Status.RUNNING.value},
            ":tags": {"L": [write_tag(tag) for tag in commit.tags]},
        }
        if commit.failure is not None:
            sets += ["last_failure = :failure", "first_failure = if_not_exists(first_failure, :failure)"]
            values[":failure"] = write_failure(commit.failure)
        removes = ["#until", UNFINISHED_OF, *self._finish(commit.status, commit.result, sets, values)]
        update = f"SET {', '.join(sets)} REMOVE {', '.join(removes)}"
        return self._conditional(self.hold.record, update, "#token = :token AND #status = :running", values)

    def _reconciliation(self, reconciliation: Reconciliation) -> dict[str, Any]:
        # The tags go along: a copy of the settled job's message repeats the invalidation of this commit.
        sets = ["#status = :status", "updated_at = :now", "ended_at = :now", "tags = :tags"]
        values: dict[str, Any] = {
            ":unknown": {"S": Status.UNKNOWN.value},
            ":tags": {"L": [write_tag(tag) for tag in self.commit.tags]},
        }
        removes = self._finish(reconciliation.status, reconciliation.result, sets, values)
        if reconciliation.status is Status.RETRYING:  # it runs again: the message sent anew is a first copy
            sets.append("#death = :none")
            values[":none"] = {"N": "0"}
        update = f"SET {', '.join(sets)}" + (f" REMOVE {', '.join(removes)}" if removes else "")
        return self._conditional(reconciliation.record, update, "#status = :unknown", values)

    def _finish(self, status: Status, result: str | None, sets: list[str], values: dict[str, Any]) -> list[str]:
        """Add what every end sets; give what it removes. Only what is final expires, and drops its payload."""
        values[":status"] = {"S": status.value}
        values[":now"] = {"S": self.now.isoformat()}
        if result is not None:
            sets.append("#data = :data")
            values[":data"] = {"S": result}
        if status not in ENDED - {Status.UNKNOWN}:
            return []
        sets += ["#expires = :expires", "#ttl = :ttl"]
        values[":expires"] = {"N": str(self._get_expiry_timestamp())}
        values[":ttl"] = {"N": str(int((self.now + RETENTION + EXPIRY_MARGIN).timestamp()))}
        return ["payload"]

    def _conditional(self, record: str, update: str, condition: str, values: dict[str, Any]) -> dict[str, Any]:
        used = f"{update} {condition}"
        return {
            "Update": {
                "TableName": self.table_name,
                "Key": self._get_key(record),
                "UpdateExpression": update,
                "ConditionExpression": condition,
                "ExpressionAttributeNames": {name: value for name, value in _NAMES.items() if _uses(used, name)},
                "ExpressionAttributeValues": values,
                "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
            }
        }

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
        condition = "#token = :token AND #status = :running"
        update = self._conditional(self.hold.record, f"SET {sets} REMOVE #until", condition, values)
        self.client.update_item(**update["Update"])

    def prolong(self, until: datetime) -> None:
        """Move the claim's deadline, if the attempt still holds it."""
        values = {
            ":token": {"S": self.hold.token},
            ":running": {"S": Status.RUNNING.value},
            ":now": {"S": self.now.isoformat()},
            ":until": {"N": str(to_millis(until))},
        }
        held = "#token = :token AND #status = :running"
        update = self._conditional(self.hold.record, "SET #until = :until, updated_at = :now", held, values)
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
            self.hold.record,
            "SET #status = :status, updated_at = :now, death = :death, last_failure = :failure,"
            f" first_failure = if_not_exists(first_failure, :failure) REMOVE #until, {UNFINISHED_OF}",
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
