"""The updates by which an attempt writes what it has done: a step of its job, its job's end, an unknown job's settlement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shared.backends.dynamodb.job_record_item import (
    LOOK_AT,
    OPEN,
    UNENDED,
    conditional,
    watched_from,
    write_failure,
    write_progress,
    write_split,
    write_tag,
    write_tally,
)
from shared.job_record import ENDED, EXPIRY_MARGIN, RETENTION, Status

if TYPE_CHECKING:
    from datetime import datetime

    from shared.commit import Checkpoint, Commit, Reconciliation
    from shared.job_record import Hold
    from shared.tag import Tag

HELD = "#token = :token AND #status = :running"


def stepped(hold: Hold, checkpoint: Checkpoint, now: datetime, *, although_cancelling: bool) -> dict[str, Any]:
    """Of a step: the job is still held."""
    values: dict[str, Any] = {
        ":token": {"S": hold.token},
        ":running": {"S": Status.RUNNING.value},
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
        ":token": {"S": hold.token},
        ":running": {"S": Status.RUNNING.value},
        ":tags": {"L": [write_tag(tag) for tag in commit.tags]},
    }
    if commit.failure is not None:
        sets += ["last_failure = :failure", "first_failure = if_not_exists(first_failure, :failure)"]
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
