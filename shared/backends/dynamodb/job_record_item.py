"""What a job record looks like as a DynamoDB item."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from shared.backends.dynamodb.outbox import shard_of
from shared.clock import from_millis
from shared.commit import Progress
from shared.job_record import LOST_AFTER, JobView, Replayed, Status
from shared.outcome import Failure
from shared.parts import Place, Split, Tally
from shared.tag import Tag, Version

UNENDED = "unended"  # key of the sparse index of jobs whose message may be lost, by shard and time to look
LOOK_AT = "look_at"
WATCHED = f"{UNENDED}, {LOOK_AT}"
# Keys of the sparse indexes of an owner's jobs (see owned_jobs.py); accepting alone sets the first two.
LISTED_FOR = "listed_for"
UNFINISHED_OF = "unfinished_of"  # removed when the job first ends; a dead letter and an unknown outcome are ends, too
CREATED_AT = "created_at"
STEPS = "checkpoints, checkpoint, checkpoint_tags, stepped_at, progress, #split, tally, cancelling"
OPEN = f"{WATCHED}, {UNFINISHED_OF}"  # what is removed when the job ends


def read_view(record: str, item: dict[str, Any]) -> JobView:
    """A job record from its item."""

    def number(name: str) -> int | None:
        return int(item[name]["N"]) if name in item else None

    def text(name: str) -> str | None:
        return str(item[name]["S"]) if name in item else None

    run_at = number("run_at") or None
    until, before, expires = number("in_progress_expiration"), number("not_before"), number("expiration")
    return JobView(
        record=record,
        status=Status(item["status"]["S"]),
        attempts=number("attempts") or 0,
        fingerprint=text("fingerprint") or "",
        death=number("death") or 0,
        result=text("data"),
        tags=tuple(read_tag(tag) for tag in item.get("tags", {}).get("L", [])),
        token=text("attempt_token"),
        claim_until=None if until is None else from_millis(until),
        not_before=None if before is None else from_millis(before),
        expires=None if expires is None else datetime.fromtimestamp(expires, UTC),
        payload=text("payload"),
        job_id=text("job_id"),
        trace=text("trace"),
        version=number("schema_version") or 1,
        run_at=None if run_at is None else from_millis(run_at),
        look_at=None if "look_at" not in item else datetime.fromisoformat(item["look_at"]["S"]),
        rescues=number("rescues") or 0,
        earlier=tuple(name["S"] for name in item.get("earlier", {}).get("L", [])),
        ended_at=None if "ended_at" not in item else datetime.fromisoformat(item["ended_at"]["S"]),
        first_failure=read_failure(item.get("first_failure")),
        last_failure=read_failure(item.get("last_failure")),
        begun_at=None if "begun_at" not in item else datetime.fromisoformat(item["begun_at"]["S"]),
        intents={name: token["S"] for name, token in item.get("intents", {}).get("M", {}).items()},
        failures=read_failures(item.get("failures", {}).get("L", [])),
        replays=number("replays") or 0,
        replayed=read_replayed(item.get("replayed")),
        checkpoints=number("checkpoints") or 0,
        checkpoint=text("checkpoint"),
        checkpoint_tags=tuple(read_tag(tag) for tag in item.get("checkpoint_tags", {}).get("L", [])),
        stepped_at=None if "stepped_at" not in item else datetime.fromisoformat(item["stepped_at"]["S"]),
        progress=read_progress(item.get("progress")),
        split=read_split(item.get("split")),
        tally=read_tally(item.get("tally")),
        place=read_place(item),
        cancelling="cancelling" in item,
        names={
            name: item[name]["S"] for name in ("owner", "job_type", "idempotency_key", "operation_id") if name in item
        },
    )


def write_tag(tag: Tag) -> dict[str, Any]:
    """A tag as a DynamoDB string, or with its floor as a map."""
    if tag.floor is None:
        return {"S": tag.name}
    return {"M": {"tag": {"S": tag.name}, "floor": {"S": tag.floor.text}}}


def read_tag(value: dict[str, Any]) -> Tag:
    """A tag from its string or map."""
    if "S" in value:
        return Tag(value["S"])
    return Tag(value["M"]["tag"]["S"], Version.read(value["M"]["floor"]["S"]))


def write_failure(failure: Failure) -> dict[str, Any]:
    """A failure as a DynamoDB map."""
    names = {
        "at": failure.at.isoformat(),
        "reason": failure.reason,
        "error": failure.error,
        "signature": failure.signature,
        "dependency": failure.dependency,
    }
    return {"M": {name: {"S": value} for name, value in names.items() if value is not None}}


def read_failure(value: dict[str, Any] | None) -> Failure | None:
    """A failure from its map."""
    if value is None:
        return None
    names = {name: inner["S"] for name, inner in value["M"].items()}
    return Failure(
        datetime.fromisoformat(names["at"]),
        names["reason"],
        names["error"],
        names["signature"],
        names.get("dependency"),
    )


def read_failures(values: list[dict[str, Any]]) -> tuple[Failure, ...]:
    """The failures of a record's attempts. One that ended a job was noted when its attempt was given back, too."""
    failures = [failure for value in values if (failure := read_failure(value)) is not None]
    return tuple(
        failure for place, failure in enumerate(failures) if failure not in failures[max(place - 1, 0) : place]
    )


def write_replayed(replayed: Replayed) -> dict[str, Any]:
    """The last replay as a DynamoDB map."""
    names = {"at": {"S": replayed.at.isoformat()}, "by": {"S": replayed.by}, "death": {"N": str(replayed.death)}}
    return {"M": names}


def read_replayed(value: dict[str, Any] | None) -> Replayed | None:
    """The last replay from its map."""
    if value is None:
        return None
    names = value["M"]
    return Replayed(int(names["death"]["N"]), datetime.fromisoformat(names["at"]["S"]), names["by"]["S"])


def write_progress(progress: Progress) -> dict[str, Any]:
    """The progress as a DynamoDB map."""
    names = {"done": {"N": str(progress.done)}, "at": {"S": progress.at.isoformat()}, "note": {"S": progress.note}}
    return {"M": {**names, **({} if progress.total is None else {"total": {"N": str(progress.total)}})}}


def read_progress(value: dict[str, Any] | None) -> Progress | None:
    """The progress from its map."""
    if value is None:
        return None
    names = value["M"]
    total = int(names["total"]["N"]) if "total" in names else None
    return Progress(int(names["done"]["N"]), datetime.fromisoformat(names["at"]["S"]), total, names["note"]["S"])


def write_split(split: Split) -> dict[str, Any]:
    """How far a job is split, as a DynamoDB map."""
    return {"M": {"name": {"S": split.name}, "blocks": {"N": str(split.blocks)}, "parts": {"N": str(split.parts)}}}


def read_split(value: dict[str, Any] | None) -> Split | None:
    """How far a job is split, from its map."""
    if value is None:
        return None
    names = value["M"]
    return Split(names["name"]["S"], int(names["blocks"]["N"]), int(names["parts"]["N"]))


def write_tally(tally: Tally) -> dict[str, Any]:
    """A tally as a DynamoDB map."""
    return {"M": {name: {"N": str(count)} for name, count in asdict(tally).items()}}


def read_tally(value: dict[str, Any] | None) -> Tally | None:
    """A tally from its map."""
    return None if value is None else Tally(**{name: int(count["N"]) for name, count in value["M"].items()})


def write_place(place: Place) -> dict[str, Any]:
    """The attributes of a part's record that say where it belongs."""
    return {"part_of": {"S": place.parent}, "block": {"S": place.block}, "part": {"N": str(place.number)}}


def read_place(item: dict[str, Any]) -> Place | None:
    """Where a part belongs; None of a job that is none."""
    if "part_of" not in item:
        return None
    return Place(item["part_of"]["S"], item["block"]["S"], int(item["part"]["N"]))


def watched_from(record: str, now: datetime) -> dict[str, Any]:
    """The attributes by which a job is found whose message is lost: the shard of the index, and when to look."""
    look_at = (now + LOST_AFTER).astimezone(UTC)  # the index compares texts
    return {UNENDED: {"S": str(shard_of(record))}, LOOK_AT: {"S": look_at.isoformat()}}
