"""The part counter on a real table's stream: what it reads, and what it leaves alone."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from functions import part_counter
from functions.invoked import once
from functions.part_counter import read_ends
from shared.clock import SystemClock
from shared.commit import Checkpoint, Commit
from shared.errors import EventError
from shared.job_record import SYSTEM, Hold, Status, record_id
from shared.outbox import Posting
from shared.parts import Ended, Part, PartState, Place, Split
from shared.settings import Settings
from tests.aws import Database
from tests.conformance.claims import claim
from tests.world import THINGS, Context

if TYPE_CHECKING:
    from shared.job_record import JobView

PLACE = Place("parent", "parts/x/0", 3)


def image(**changes: Any) -> dict[str, Any]:
    texts = {"id": "r", "part_of": "parent", "block": "parts/x/0", "status": "completed", **changes}
    return {**{name: {"S": text} for name, text in texts.items() if text is not ...}, "part": {"N": "3"}}


def stream(*images: dict[str, Any]) -> dict[str, Any]:
    return {
        "Records": [
            {"eventSource": "aws:dynamodb", "eventName": "MODIFY", "dynamodb": {"NewImage": image}} for image in images
        ]
    }


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ("completed", PartState.SUCCEEDED),
        ("failed", PartState.FAILED),
        ("cancelled", PartState.CANCELLED),
        ("dead-lettered", PartState.DEAD_LETTERED),
    ],
)
def test_each_end_of_a_part_is_read(status: str, state: PartState) -> None:
    assert read_ends(stream(image(status=status))) == [Ended(PLACE, state)]


def test_what_is_no_end_of_a_part_is_left_alone() -> None:
    others = [image(status=status) for status in ("accepted", "running", "retrying", "unknown", "waiting")]
    removed = {"eventSource": "aws:dynamodb", "eventName": "REMOVE", "dynamodb": {}}
    event = stream(*others, image(part_of=...), image())
    event["Records"].append(removed)
    assert read_ends(event) == [Ended(PLACE, PartState.SUCCEEDED)]


@pytest.mark.parametrize(
    "event", [None, [], {}, {"Records": []}, {"Records": "x"}, {"Records": [{"eventSource": "aws:sqs"}]}]
)
def test_another_source_is_told_from_the_stream(event: Any) -> None:
    with pytest.raises(EventError, match="map this function to the stream of the job records"):
        read_ends(event)


@pytest.fixture(scope="module")
def database(aws_endpoint: str) -> Database:
    return Database.create(THINGS)


def settings(database: Database) -> Settings:
    return Settings(
        jobs_table=database.jobs_table,
        outbox_table=database.outbox_table,
        routes={"note": "notes"},
    )


def waiting(database: Database, name: str) -> tuple[Part, JobView]:
    """A parent of one part that waits for it."""
    clock = SystemClock()
    now = clock.now()
    asked = claim(name, until=now + timedelta(minutes=1), payload='{"thing":"a"}')
    records, parts = database.records(clock), database.parts(clock)
    records.claim(asked, now)
    split = Split(f"{name}-split", 1, 1)
    record = split.record("piece", 0)
    place = Place(asked.record, split.block(0), 0)
    part = Part(record, SYSTEM, "piece", split.key(0), "1:a", "{}", 1, "t", Posting(f"{name}-0", "notes", "{}"), place)
    hold = Hold(asked.record, asked.token)
    records.checkpoint(hold, Checkpoint(1, "{}", parts=(part,), split=split), now)
    view = records.view(asked.record)
    assert view is not None
    parts.wait(view, now, now)
    return part, view


def end(database: Database, part: Part) -> dict[str, Any]:
    """The part is done; its record as the stream brings it."""
    clock = SystemClock()
    now, records = clock.now(), database.records(clock)
    asked = claim(part.idempotency_key, record=part.record, job_type="piece", fingerprint="1:a", accepted=True)
    asked = replace(asked, until=now + timedelta(minutes=1))
    records.claim(asked, now)
    records.commit(Hold(part.record, asked.token), Commit(Status.COMPLETED, "{}"), now)
    item: dict[str, Any] = database.client.get_item(TableName=database.jobs_table, Key={"id": {"S": part.record}})
    return dict(item["Item"])


def test_the_last_end_wakes_the_parent_with_its_own_message_and_once(database: Database) -> None:
    part, parent = waiting(database, "woken-once")
    event = stream(end(database, part))
    counter = part_counter.connect(settings(database))
    for _ in range(3):
        counter.count(event)
    after = database.records(SystemClock()).view(parent.record)
    assert after is not None
    assert (after.status, after.tally and after.tally.succeeded) == (Status.RETRYING, 1)
    found = database.client.scan(TableName=database.outbox_table, ConsistentRead=True)["Items"]
    (woken,) = [item for item in found if item["id"]["S"] == "woken/woken-once-split/1"]
    body = json.loads(woken["body"]["S"])
    assert (woken["worker"]["S"], body["job_type"], body["payload"]) == ("notes", "note", {"thing": "a"})
    assert record_id(SYSTEM, body["job_type"], body["idempotency_key"]) == parent.record


def test_a_parent_whose_worker_is_not_known_is_left_to_the_sweeper(database: Database) -> None:
    part, parent = waiting(database, "unknown-worker")
    part_counter.connect(replace(settings(database), routes={})).count(stream(end(database, part)))
    after = database.records(SystemClock()).view(parent.record)
    assert after is not None
    assert (after.status, after.tally and after.tally.succeeded) == (Status.WAITING, 1)


def test_the_handler_answers_and_counts_what_it_was_given(
    database: Database, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    part, _ = waiting(database, "handled")
    for name, value in settings(database).to_environ().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(part_counter, "counter_here", once(part_counter.connect))
    assert part_counter.handler(stream(end(database, part)), Context()) == {"batchItemFailures": []}
    assert '"parts_ended":[1.0]' in capsys.readouterr().out.replace(" ", "")
