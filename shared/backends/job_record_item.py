"""What a job record looks like as a DynamoDB item."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from shared.clock import from_millis
from shared.job_record import JobView, Status
from shared.outcome import Failure
from shared.tag import Tag, Version

# Keys of the sparse indexes of an owner's jobs (see owned_jobs.py); accepting alone sets the first two.
LISTED_FOR = "listed_for"
UNFINISHED_OF = "unfinished_of"  # removed when the job first ends; a dead letter and an unknown outcome are ends, too
CREATED_AT = "created_at"


def read_view(record: str, item: dict[str, Any]) -> JobView:
    """A job record from its item."""

    def number(name: str) -> int | None:
        return int(item[name]["N"]) if name in item else None

    def text(name: str) -> str | None:
        return str(item[name]["S"]) if name in item else None

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
        first_failure=read_failure(item.get("first_failure")),
        last_failure=read_failure(item.get("last_failure")),
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
