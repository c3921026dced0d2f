"""What people change about job records in DynamoDB: each change is one conditional update, and many are one transaction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shared.backends.dynamodb.conditional_writes import update
from shared.backends.dynamodb.job_record_conditions import conditional
from shared.backends.dynamodb.job_record_item import (
    LOOK_AT,
    OPEN,
    UNENDED,
    UNFINISHED_OF,
    read_view,
    watched_from,
    write_failure,
    write_replayed,
)
from shared.backends.dynamodb.reads import batch_get
from shared.backends.dynamodb.transactions import TRIES, Busy, transact
from shared.clock import to_millis
from shared.desk.operator_records import FAILURES_KEPT, TOGETHER
from shared.errors import ClaimLost
from shared.job_record import EXPIRY_MARGIN, RETENTION, SYSTEM, Replayed, Status
from shared.limits import TRANSACTION_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime
    from random import Random

    from shared.clock import Clock
    from shared.desk.operator_records import Ending, Reopening
    from shared.job_record import JobView

REST_OF_RECORD = 64 * 1024  # bytes, generously: names, failures, intents
_REOPEN = (
    "SET #status = :accepted, updated_at = :now_text, #attempts = :none, #death = :death, replays = :replays,"
    f" replayed = :replayed, failures = :failures, {UNENDED} = :shard, {LOOK_AT} = :look_at"
)
_OLD_LIFE = "#until, #token, #not_before, #expires, #ttl, #data, tags, first_failure, last_failure, ended_at, rescues, cancelling"
_END = "SET #status = :status, updated_at = :now_text, ended_at = :now_text, #expires = :expires, #ttl = :ttl"
_GIVE_BACK = (
    "SET #status = :retrying, updated_at = :now_text, #not_before = :now, #token = :fresh,"
    f" {UNENDED} = :shard, {LOOK_AT} = :look_at REMOVE #until"
)
_NOT_HELD = "(#status <> :running OR #until < :now)"


@dataclass(frozen=True, slots=True)
class DynamoDBOperatorRecords:
    """The table of job records, as the operator changes it."""

    client: Any
    table: str
    clock: Clock
    random: Random

    def views(self, records: Sequence[str]) -> dict[str, JobView]:
        """Read records, a hundred at a time."""
        found: dict[str, JobView] = {}
        keys = [{"id": {"S": record}} for record in dict.fromkeys(records)]
        for item in batch_get(self.client, self.table, keys, self.clock, self.random):
            if "status" in item:
                view = read_view(item["id"]["S"], item)
                found[view.record] = view
        now = self.clock.now()
        return {name: view for name, view in found.items() if not view.has_expired(now)}

    def reopen(self, asked: Sequence[Reopening], now: datetime) -> frozenset[str]:
        """Make jobs accepted again, in transactions of many."""
        done: set[str] = set()
        each_once = list({reopening.seen.record: reopening for reopening in asked}.values())
        for part in _parts(each_once):
            done |= self._reopened(part, now)
        return frozenset(done)

    def end(self, seen: JobView, ending: Ending, now: datetime) -> None:
        """End a job."""
        kept = max(now, seen.not_before or now) + RETENTION  # its message may be on its way for long
        values = {
            ":status": {"S": ending.status.value},
            ":expires": {"N": str(int(kept.timestamp()))},
            ":ttl": {"N": str(int((kept + EXPIRY_MARGIN).timestamp()))},
        }
        sets = _END
        if ending.result is not None:
            sets += ", #data = :data"
            values[":data"] = {"S": ending.result}
        self._update(seen, f"{sets} REMOVE payload, #not_before, #until, {OPEN}", "", values, now)

    def give_back(self, seen: JobView, token: str, now: datetime, *, although_held: bool) -> None:
        """Let the next attempt begin at once."""
        values = {":fresh": {"S": token}, ":retrying": {"S": Status.RETRYING.value}, **_watched(seen, now)}
        self._update(seen, _GIVE_BACK, "" if although_held else _NOT_HELD, values, now)

    def _reopened(self, asked: Sequence[Reopening], now: datetime) -> set[str]:
        """Those of one transaction's worth that are accepted again. What has changed is left out, and the others tried anew."""
        done: set[str] = set()
        for _ in range(TRIES):
            if not asked:
                return done
            entries = [{"Update": self._request(each, now)} for each in asked]
            cancelled = transact(self.client, entries, self.clock, self.random)
            if cancelled is None:
                return done | {each.seen.record for each in asked}
            pairs = list(zip(asked, cancelled.in_the_way, strict=True))
            done |= {each.seen.record for each, item in pairs if item is not None and _is_ready(each, item)}
            asked = [each for each, item in pairs if item is None]
        if asked:
            message = "The job records change too fast to reopen them together."
            raise Busy(message, dependency="dynamodb")
        return done

    def _request(self, each: Reopening, now: datetime) -> dict[str, Any]:
        values = {
            ":accepted": {"S": Status.ACCEPTED.value},
            ":none": {"N": "0"},
            ":death": {"N": str(each.death)},
            ":replays": {"N": str(each.seen.replays + 1)},
            ":replayed": write_replayed(Replayed(each.death, now, each.by)),
            ":failures": {"L": [write_failure(failure) for failure in each.seen.failures[-FAILURES_KEPT:]]},
            **_watched(each.seen, now),
        }
        sets, owner = _REOPEN, each.seen.names.get("owner", SYSTEM)
        if owner != SYSTEM:
            sets += f", {UNFINISHED_OF} = :listed_for"
            values[":listed_for"] = {"S": owner}
        return self._conditional(each.seen, f"{sets} REMOVE {_OLD_LIFE}", _NOT_HELD, values, now)

    def _update(self, seen: JobView, change: str, condition: str, values: dict[str, Any], now: datetime) -> None:
        item = update(self.client, **self._conditional(seen, change, condition, values, now))
        if item is not None and not _is_written(
            item, values, now
        ):  # by an earlier try of this call, whose reply was lost
            message = "The job has changed since it was seen."
            raise ClaimLost(message)

    def _conditional(
        self, seen: JobView, change: str, condition: str, values: dict[str, Any], now: datetime
    ) -> dict[str, Any]:
        """An update of a record that is as it was seen."""
        stay = "#status = :seen_status AND #attempts = :seen_attempts AND #death = :seen_death"
        known: dict[str, Any] = {
            ":seen_status": {"S": seen.status.value},
            ":seen_attempts": {"N": str(seen.attempts)},
            ":seen_death": {"N": str(seen.death)},
            ":seen_token": {"S": seen.token or ""},
            ":running": {"S": Status.RUNNING.value},
            ":now": {"N": str(to_millis(now))},
            ":now_text": {"S": now.isoformat()},
            **values,
        }
        stay += " AND attribute_not_exists(#token)" if seen.token is None else " AND #token = :seen_token"
        if condition:
            stay += f" AND {condition}"
        place = {"TableName": self.table, "Key": {"id": {"S": seen.record}}}
        return {**place, **conditional(change, stay, known)}


def _parts(asked: Sequence[Reopening]) -> Iterator[list[Reopening]]:
    """What one transaction takes: so many, and of so many bytes, since whole records count, with their payloads."""
    part: list[Reopening] = []
    weight = 0
    for each in asked:
        size = len((each.seen.payload or "").encode()) + REST_OF_RECORD
        if part and (len(part) == TOGETHER or weight + size > TRANSACTION_BYTES):
            yield part
            part, weight = [], 0
        part.append(each)
        weight += size
    if part:
        yield part


def _watched(seen: JobView, now: datetime) -> dict[str, Any]:
    watched = watched_from(seen.record, now)
    return {":shard": watched[UNENDED], ":look_at": watched[LOOK_AT]}


def _is_ready(each: Reopening, item: dict[str, Any]) -> bool:
    """Whether a record that is not as it was seen has been made ready in the same way, by an earlier try or by another operator."""
    if "status" not in item:
        return False
    view = read_view(each.seen.record, item)
    return view.status is Status.ACCEPTED and view.replayed is not None and view.death == each.death


def _is_written(item: dict[str, Any], values: dict[str, Any], now: datetime) -> bool:
    status = values.get(":status") or values[":retrying"]
    return (item.get("status"), item.get("updated_at")) == (status, {"S": now.isoformat()})
