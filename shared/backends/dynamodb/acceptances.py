"""Accepting jobs in DynamoDB: the job record and the outbox item in one conditional transaction."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from shared.backends.aws import translated
from shared.backends.dynamodb.conditional_writes import updated
from shared.backends.dynamodb.job_record_conditions import conditional
from shared.backends.dynamodb.job_record_item import LISTED_FOR, OPEN, UNFINISHED_OF, read_view, watched_from
from shared.backends.dynamodb.outbox import write_posting
from shared.backends.dynamodb.transactions import Cancelled, transact
from shared.clock import from_millis, to_millis
from shared.errors import StoreUnavailable
from shared.intake.acceptance import STOPPABLE, Accepted, Overtaken, answer_for
from shared.job_record import EXPIRY_MARGIN, RETENTION, Status, operation_id

if TYPE_CHECKING:
    from datetime import datetime
    from random import Random

    from shared.clock import Clock
    from shared.intake.acceptance import Acceptance, Acceptances
    from shared.job_record import JobView

GENERATIONS_KEPT = timedelta(days=400)  # longer than a job may be scheduled ahead
ABSENT = (
    "attribute_not_exists(id) OR expiration <= :now"  # what has expired is absent, whether it is still there or not
)


@dataclass(frozen=True, slots=True)
class DynamoDBAcceptances:
    """Accepts jobs."""

    client: Any
    jobs_table: str
    outbox_table: str
    clock: Clock
    random: Random

    def accept(self, acceptance: Acceptance, now: datetime) -> Acceptances:
        """Write the record and the message, or find what was written before."""
        item = write_accepted(acceptance, now)
        entries: list[dict[str, Any]] = [
            {
                "Put": {
                    "TableName": self.jobs_table,
                    "Item": item,
                    "ConditionExpression": ABSENT,
                    "ExpressionAttributeValues": {":now": {"N": str(int(now.timestamp()))}},
                    "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
                }
            },
            {
                "Put": {
                    "TableName": self.outbox_table,
                    "Item": write_posting(acceptance.posting, now),
                    "ConditionExpression": "attribute_not_exists(id)",
                }
            },
        ]
        if acceptance.base is not None:
            entries.append({"Update": self._begin_generation(acceptance.base, acceptance.generation, now)})
        cancelled = transact(self.client, entries, self.clock, self.random)
        return Accepted(read_view(acceptance.record, item)) if cancelled is None else _found(acceptance, cancelled)

    def generation(self, base: str) -> int:
        """The latest generation of a key."""
        with translated("dynamodb"):
            answer = self.client.get_item(
                TableName=self.jobs_table, Key={"id": {"S": _latest(base)}}, ConsistentRead=True
            )
        return int(answer["Item"]["generation"]["N"]) if "Item" in answer else 0

    def cancel(self, record: str, owner: str, now: datetime) -> JobView | None:
        """Cancel the owner's job if no attempt of it ever began, and give it as it is then."""
        item = self._cancel(record, owner, now, waits=None)
        if item.get("owner", {}).get("S") != owner:
            return None
        if item["status"]["S"] == Status.ACCEPTED.value and "not_before" in item:
            item = self._cancel(record, owner, now, waits=int(item["not_before"]["N"]))
        if item["status"]["S"] in {status.value for status in STOPPABLE} and "checkpoints" in item:
            item = self._stop(record, now)
        view = read_view(record, item)
        return None if view.has_expired(now) else view

    def _cancel(self, record: str, owner: str, now: datetime, *, waits: int | None) -> dict[str, Any]:
        """Cancel a job that waits until then, or one that waits for nothing; give its item as it is then.

        The record must outlive the message, which may be on its way for long.
        """
        kept = (now if waits is None else max(now, from_millis(waits))) + RETENTION
        values = {
            ":owner": {"S": owner},
            ":accepted": {"S": Status.ACCEPTED.value},
            ":cancelled": {"S": Status.CANCELLED.value},
            ":now": {"S": now.isoformat()},
            ":expires": {"N": str(int(kept.timestamp()))},
            ":ttl": {"N": str(int((kept + EXPIRY_MARGIN).timestamp()))},
            ":waits": {"N": str(to_millis(now) if waits is None else waits)},
        }
        waiting = (
            "(attribute_not_exists(not_before) OR not_before <= :waits)" if waits is None else "not_before = :waits"
        )
        update = (
            "SET #status = :cancelled, updated_at = :now, ended_at = :now, #expires = :expires, #ttl = :ttl"
            f" REMOVE payload, #not_before, {OPEN}"
        )
        # A job that was replayed is accepted again, and may have done something before it died.
        condition = f"#owner = :owner AND #status = :accepted AND attribute_not_exists(begun_at) AND {waiting}"
        return self._updated(record, update, condition, values)

    def _stop(self, record: str, now: datetime) -> dict[str, Any]:
        """Ask a job of many steps, which is its owner's who asks, to end before its next one; give its item as it is then."""
        states = {f":{status.name.lower()}": {"S": status.value} for status in STOPPABLE}
        update = "SET cancelling = if_not_exists(cancelling, :now)"
        condition = f"attribute_exists(checkpoints) AND #status IN ({', '.join(states)})"
        values = {":now": {"S": now.isoformat()}, **states}
        return self._updated(record, update, condition, values)

    def _updated(self, record: str, change: str, condition: str, values: dict[str, Any]) -> dict[str, Any]:
        """Update a record as it must be; give its item as it is then, updated or not."""
        place = {"TableName": self.jobs_table, "Key": {"id": {"S": record}}}
        return updated(self.client, **place, **conditional(change, condition, values), ReturnValues="ALL_NEW")[1]

    def _begin_generation(self, base: str, generation: int, now: datetime) -> dict[str, Any]:
        """Note the latest generation of a key, beside the record that it brings."""
        return {
            "TableName": self.jobs_table,
            "Key": {"id": {"S": _latest(base)}},
            "UpdateExpression": "SET generation = :generation, #ttl = :ttl",
            "ConditionExpression": "attribute_not_exists(id) OR generation <= :generation",
            "ExpressionAttributeNames": {"#ttl": "ttl"},
            "ExpressionAttributeValues": {
                ":generation": {"N": str(generation)},
                ":ttl": {"N": str(int((now + GENERATIONS_KEPT).timestamp()))},
            },
        }


def _found(acceptance: Acceptance, cancelled: Cancelled) -> Acceptances:
    """What was there before.

    Raises:
        StoreUnavailable: nobody knows.
    """
    seen, _, *generation = cancelled.in_the_way
    if seen is not None:
        view = read_view(acceptance.record, seen)
        return answer_for(acceptance, view, seen.get("accepted_by", {}).get("S"))
    if any(item is not None for item in generation):
        return Overtaken()
    message = "The message is in the outbox, and its job record is not there."
    raise StoreUnavailable(message, dependency="dynamodb")


def write_accepted(acceptance: Acceptance, now: datetime) -> dict[str, Any]:
    """The item of an accepted job."""
    texts = {
        "id": acceptance.record,
        "status": Status.ACCEPTED.value,
        "owner": acceptance.owner,
        "job_type": acceptance.job_type,
        "idempotency_key": acceptance.idempotency_key,
        "operation_id": operation_id(acceptance.record),
        "fingerprint": acceptance.fingerprint,
        "payload": acceptance.payload,
        "accepted_by": acceptance.token,
        "created_at": now.isoformat(),
        "updated_at": now.isoformat(),
        LISTED_FOR: acceptance.owner,
        UNFINISHED_OF: acceptance.owner,
    }
    if acceptance.trace is not None:
        texts["trace"] = acceptance.trace
    waits: dict[str, Any] = {}
    if acceptance.run_at is not None:
        moment = {"N": str(to_millis(acceptance.run_at))}
        waits = {"not_before": moment, "run_at": moment}
    return {
        **{name: {"S": text} for name, text in texts.items()},
        "schema_version": {"N": str(acceptance.version)},
        "attempts": {"N": "0"},
        "death": {"N": "0"},
        **waits,
        **watched_from(acceptance.record, max(now, acceptance.run_at or now)),
    }


def _latest(base: str) -> str:
    """The key of the item that names the latest generation; no record has such a key."""
    return f"latest/{base}"
