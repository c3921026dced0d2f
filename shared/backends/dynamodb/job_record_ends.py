"""The updates by which an attempt writes what becomes of its job: a step, its end, that it is given back, its death."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shared.backends.dynamodb.job_record_conditions import HELD, conditional, held_values
from shared.backends.dynamodb.job_record_item import (
    LOOK_AT,
    OPEN,
    UNENDED,
    watched_from,
    write_failure,
    write_progress,
    write_split,
    write_tag,
    write_tally,
)
from shared.clock import to_millis
from shared.job_record import ENDED, EXPIRY_MARGIN, RETENTION, Status

if TYPE_CHECKING:
    from datetime import datetime

    from shared.commit import Checkpoint, Commit, Progress, Reconciliation, Release
    from shared.job_record import Hold
    from shared.message import Message
    from shared.outcome import Failure
    from shared.tag import Tag

_NOTED = "failures = list_append(if_not_exists(failures, :no_failures), :failures)"
_LAST = "last_failure = :failure, first_failure = if_not_exists(first_failure, :failure)"

# The death of a job that no attempt holds, with `buried_values`.
BURY = (
    "SET #status = :dead, #death = #death + :one, updated_at = :now_text, ended_at = :now_text,"
    f" {_LAST} REMOVE #until, {OPEN}"
)
# A job that was replayed is accepted, too; but it has begun once, and its copy is on its way.
_UNBEGUN = (
    "#status = :accepted AND attribute_not_exists(begun_at) AND job_type = :job_type AND idempotency_key = :key"
    " AND payload = :payload"
)


def stepped(hold: Hold, checkpoint: Checkpoint, now: datetime, *, although_cancelling: bool) -> dict[str, Any]:
    """Of a step: the job is still held."""
    values: dict[str, Any] = {
        **held_values(hold),
        ":now": {"S": now.isoformat()},
        ":number": {"N": str(checkpoint.number)},
        ":state": {"S": checkpoint.state},
        ":tags": {"L": [write_tag(tag) for tag in checkpoint.tags]},
    }
    sets = "updated_at = :now, stepped_at = :now, checkpoints = :number, checkpoint = :state, checkpoint_tags = :tags"
    intents = {f"#intent{place}": name for place, name in enumerate(sorted(checkpoint.settled))}
    removes = f" REMOVE {', '.join(f'intents.{name}' for name in intents)}" if intents else ""
    if checkpoint.progress is not None:
        sets += ", progress = :progress"
        values[":progress"] = write_progress(checkpoint.progress)
    if checkpoint.split is not None:
        sets += ", #split = :split"
        values[":split"] = write_split(checkpoint.split)
    once = "(attribute_not_exists(checkpoints) OR checkpoints < :number)"
    once += "" if although_cancelling else " AND attribute_not_exists(cancelling)"
    held = conditional(f"SET {sets}{removes}", f"{HELD} AND {once}", values)
    held["ExpressionAttributeNames"] |= intents
    return held


def ended(hold: Hold, commit: Commit, now: datetime) -> dict[str, Any]:
    """Of a job's end."""
    sets = ["#status = :status", "updated_at = :now", "ended_at = :now", "tags = :tags"]
    values: dict[str, Any] = {
        **held_values(hold),
        ":tags": {"L": [write_tag(tag) for tag in commit.tags]},
    }
    if commit.failure is not None:
        sets.append(_LAST)
        values[":failure"] = write_failure(commit.failure)
    if commit.progress is not None:
        sets.append("progress = :progress")
        values[":progress"] = write_progress(commit.progress)
    if commit.tally is not None:
        sets.append("tally = :tally")
        values[":tally"] = write_tally(commit.tally)
    removes = ["#until", OPEN, *_finish(commit.status, commit.result, now, sets, values)]
    update = f"SET {', '.join(sets)} REMOVE {', '.join(removes)}"
    return conditional(update, HELD, values)


def settled(reconciliation: Reconciliation, tags: tuple[Tag, ...], now: datetime) -> dict[str, Any]:
    """Of an unknown job that the commit of another settles."""
    # The tags go along: a copy of the settled job's message repeats the invalidation of this commit.
    sets = ["#status = :status", "updated_at = :now", "ended_at = :now", "tags = :tags"]
    values: dict[str, Any] = {
        ":unknown": {"S": Status.UNKNOWN.value},
        ":tags": {"L": [write_tag(tag) for tag in tags]},
    }
    removes = _finish(reconciliation.status, reconciliation.result, now, sets, values)
    if reconciliation.status is Status.RETRYING:  # it runs again: the message sent anew is a first copy
        sets += ["#death = :none", f"{UNENDED} = :shard", f"{LOOK_AT} = :look_at"]
        watched = watched_from(reconciliation.record, now)
        values |= {":none": {"N": "0"}, ":shard": watched[UNENDED], ":look_at": watched[LOOK_AT]}
        # Nothing of before was done, or it is behind a checkpoint: its keys are new.
        removes = [*removes, "intents", "begun_at", "stepped_at"]
        if reconciliation.checkpoint is not None:
            sets += ["checkpoint = :state", "checkpoints = if_not_exists(checkpoints, :none) + :one"]
            values |= {":state": {"S": reconciliation.checkpoint}, ":one": {"N": "1"}}
    update = f"SET {', '.join(sets)}" + (f" REMOVE {', '.join(removes)}" if removes else "")
    return conditional(update, "#status = :unknown", values)


def given_back(hold: Hold, release: Release, now: datetime) -> dict[str, Any]:
    """Of a job that is given back: the record stays, with what went wrong and when the next attempt may begin."""
    watched = watched_from(hold.record, max(now, release.not_before))
    values = {
        **held_values(hold),
        ":retrying": {"S": Status.RETRYING.value},
        ":now": {"S": now.isoformat()},
        ":not_before": {"N": str(to_millis(release.not_before))},
        ":shard": watched[UNENDED],
        ":look_at": watched[LOOK_AT],
    }
    sets = f"#status = :retrying, updated_at = :now, not_before = :not_before, {UNENDED} = :shard, {LOOK_AT} = :look_at"
    if release.gives_attempt_back:
        sets += ", attempts = attempts - :one"
        values[":one"] = {"N": "1"}
    if release.failure is not None:
        sets += f", {_LAST}"
        values[":failure"] = write_failure(release.failure)
        if not release.gives_attempt_back:
            sets += f", {_NOTED}"
            values |= _noted(release.failure)
    return conditional(f"SET {sets} REMOVE #until", HELD, values)


def prolonged(hold: Hold, until: datetime, now: datetime) -> dict[str, Any]:
    """Of a claim whose deadline moves."""
    values = {**held_values(hold), ":now": {"S": now.isoformat()}, ":until": {"N": str(to_millis(until))}}
    return conditional("SET #until = :until, updated_at = :now", HELD, values)


def progressed(hold: Hold, progress: Progress) -> dict[str, Any]:
    """Of a job that tells how far it is."""
    return conditional("SET progress = :progress", HELD, {**held_values(hold), ":progress": write_progress(progress)})


def buried(hold: Hold, death: int, failure: Failure, now: datetime) -> dict[str, Any]:
    """Of a dead letter's job, whose last attempt is still this one."""
    values = {
        **held_values(hold),
        ":retrying": {"S": Status.RETRYING.value},
        ":status": {"S": Status.DEAD_LETTERED.value},
        ":now": {"S": now.isoformat()},
        ":death": {"N": str(death)},
        ":failure": write_failure(failure),
        **_noted(failure),
    }
    return conditional(
        f"SET #status = :status, updated_at = :now, ended_at = :now, death = :death, {_LAST}, {_NOTED} REMOVE #until, {OPEN}",
        "#token = :token AND #status IN (:running, :retrying)",
        values,
    )


def buried_unbegun(message: Message, failure: Failure, now: datetime) -> dict[str, Any]:
    """Of a dead letter's job that no attempt ever began: it is accepted, and the message is its own."""
    values = {
        ":accepted": {"S": Status.ACCEPTED.value},
        ":job_type": {"S": message.job_type},
        ":key": {"S": message.idempotency_key},
        ":payload": {"S": message.payload},
    }
    return conditional(BURY, _UNBEGUN, {**values, **buried_values(failure, now)})


def buried_values(failure: Failure, now: datetime) -> dict[str, Any]:
    """The values of `BURY`."""
    return {
        ":dead": {"S": Status.DEAD_LETTERED.value},
        ":one": {"N": "1"},
        ":now_text": {"S": now.isoformat()},
        ":failure": write_failure(failure),
    }


def _noted(failure: Failure) -> dict[str, Any]:
    """The values that add a failure to those of the attempts before."""
    return {":no_failures": {"L": []}, ":failures": {"L": [write_failure(failure)]}}


def _finish(status: Status, result: str | None, now: datetime, sets: list[str], values: dict[str, Any]) -> list[str]:
    """Add what every end sets; give what it removes. Only what is final expires, and drops its payload."""
    values[":status"] = {"S": status.value}
    values[":now"] = {"S": now.isoformat()}
    if result is not None:
        sets.append("#data = :data")
        values[":data"] = {"S": result}
    if status not in ENDED - {Status.UNKNOWN}:
        return []
    sets += ["#expires = :expires", "#ttl = :ttl"]
    values[":expires"] = {"N": str(int((now + RETENTION).timestamp()))}
    values[":ttl"] = {"N": str(int((now + RETENTION + EXPIRY_MARGIN).timestamp()))}
    return ["payload", "checkpoint", "checkpoint_tags"]
