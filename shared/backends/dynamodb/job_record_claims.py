"""The two conditional writes of a claim in DynamoDB: one more attempt, and a life begun anew. They are `decide` in one write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shared.backends.dynamodb.job_record_conditions import conditional
from shared.backends.dynamodb.job_record_item import LOOK_AT, STEPS, UNENDED, WATCHED, watched_from
from shared.claim import is_another_job, names_before
from shared.clock import to_millis
from shared.job_record import Status, operation_id

if TYPE_CHECKING:
    from datetime import datetime

    from shared.claim import Claim
    from shared.job_record import JobView

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
    " #death = if_not_exists(#death, :death), job_id = if_not_exists(job_id, :job_id),"
    " #trace = if_not_exists(#trace, :trace), begun_at = if_not_exists(begun_at, :now_text),"
    " run_at = if_not_exists(run_at, :run_at)"
)
# Everything of the old life goes, but for when the job was first seen and whose it is.
_BEGIN_ANEW = (
    "#status = :running, #token = :token, #until = :until, updated_at = :now_text,"
    " #owner = if_not_exists(#owner, :owner),"
    " created_at = if_not_exists(created_at, :now_text), job_type = :job_type, idempotency_key = :key,"
    " operation_id = :operation, #fingerprint = :fingerprint, payload = :payload, schema_version = :version,"
    " #death = :death, job_id = :job_id, #trace = :trace, run_at = :run_at, #attempts = :one"
    " REMOVE #not_before, #expires, #ttl, #data, tags, failures, replays, replayed,"
    " first_failure, last_failure, ended_at, rescues"
)


def take(claim: Claim, now: datetime) -> dict[str, Any]:
    """A new record, one more attempt, or the take-over of one whose deadline has passed."""
    update = f"SET {_TAKE}, #attempts = if_not_exists(#attempts, :none) + :one REMOVE #not_before"
    return _update(claim, now, update, _ACCEPTED if claim.accepted else _RUNNABLE, {})


def begin_anew(claim: Claim, now: datetime, seen: JobView) -> dict[str, Any]:
    """The first attempt of a record whose life is over, naming what was seen of it."""
    stay = "#status = :seen_status AND #attempts = :seen_attempts AND #death = :seen_death"
    values: dict[str, Any] = {
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
    # What a dead letter's job did or may have done is remembered in its next life, too.
    if is_another_job(seen, claim, now):
        update = f"begun_at = :now_text, {_BEGIN_ANEW}, intents, {STEPS}"
    else:
        update = f"begun_at = if_not_exists(begun_at, :now_text), {_BEGIN_ANEW}"
    if claim.reopens is not None:
        update = f"earlier = :earlier, {update}"
        values[":earlier"] = {"L": [{"S": name} for name in names_before(seen)]}
    if not claim.accepted:
        return _update(claim, now, f"SET {update}, {WATCHED}", stay, values)
    # What was accepted is watched from here on, as it was from its acceptance.
    watched = watched_from(claim.record, now)
    values |= {":shard": watched[UNENDED], ":look_at": watched[LOOK_AT]}
    return _update(claim, now, f"SET {UNENDED} = :shard, {LOOK_AT} = :look_at, {update}", stay, values)


def _update(claim: Claim, now: datetime, update: str, condition: str, more: dict[str, Any]) -> dict[str, Any]:
    known = {
        ":running": {"S": Status.RUNNING.value},
        ":accepted": {"S": Status.ACCEPTED.value},
        ":retrying": {"S": Status.RETRYING.value},
        ":token": {"S": claim.token},
        ":until": {"N": str(to_millis(claim.until))},
        ":now": {"N": str(to_millis(now))},
        ":now_text": {"S": now.isoformat()},
        ":owner": {"S": claim.owner},
        ":job_type": {"S": claim.job_type},
        ":key": {"S": claim.idempotency_key},
        ":operation": {"S": operation_id(claim.record)},
        ":fingerprint": {"S": claim.fingerprint},
        ":schema": {"S": f"{claim.fingerprint.partition(':')[0]}:"},
        ":payload": {"S": claim.payload},
        ":version": {"N": str(claim.version)},
        ":death": {"N": str(claim.death)},
        ":job_id": {"S": claim.job_id or ""},
        ":trace": {"S": claim.trace or ""},
        ":run_at": {"N": "0" if claim.run_at is None else str(to_millis(claim.run_at))},
        ":max": {"N": str(claim.max_attempts)},
        ":none": {"N": "0"},
        ":one": {"N": "1"},
        **more,
    }
    return conditional(update, condition, known)
