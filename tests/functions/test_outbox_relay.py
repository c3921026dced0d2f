"""The relay: at least once, nothing skipped, nothing counted that was not sent."""

from __future__ import annotations

import base64
import json
from collections import defaultdict
from dataclasses import dataclass, field, replace
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from functions.outbox_relay import read_stream
from shared.backends.aws import client
from shared.backends.dynamodb.outbox import DynamoDBOutbox, read_posting, write_posting
from shared.errors import EventError, StoreUnavailable, Unavailable
from shared.message import FORMAT, Message
from shared.outbox import Posting
from shared.producer import NotTaken, Outgoing
from shared.rounds.relay import Relay
from shared.telemetry import NO_JOB_TYPE, Silent
from tests.aws import Database
from tests.world import START, FakeClock

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from shared.outcome import Failure

FULL = Posting("p1", "payments", "{}", timedelta(seconds=7), "group", {"trace": "t"}, tenant="shop-1")


@dataclass
class Sent:
    """Queues and an outbox that note what they are told."""

    refusing: set[str] = field(default_factory=set)
    final: bool = False
    deaf: bool = False

    def __post_init__(self) -> None:
        self.queues: defaultdict[str, list[Outgoing]] = defaultdict(list)
        self.marked: list[str] = []
        self.parked: dict[str, str] = {}
        self.given_up: dict[str, str] = {}
        self.telemetry = Silent()

    def post(self, posting: Posting, now: datetime) -> None:
        """Nothing is posted here."""

    def lane(self, name: str) -> Iterator[Posting]:
        return iter(())  # nothing is asked to be in order here

    def bury_unbegun(self, message: Message, failure: Failure, now: datetime) -> None:
        assert message.record is not None
        self.given_up[message.record] = failure.error

    def park(self, posting: Posting, reason: str) -> None:
        self.parked[posting.id] = reason

    def queue(self, worker: str) -> Any:
        sent = self
        if worker == "absent":
            return None

        class Queue:
            def send(self, batch: Sequence[Outgoing]) -> Sequence[str | NotTaken]:
                sent.queues[worker] += [message for message in batch if message.body not in sent.refusing]
                return [NotTaken("Code", final=sent.final) if m.body in sent.refusing else "id" for m in batch]

        return Queue()

    def mark_sent(self, posting: Posting, now: datetime) -> None:
        if self.deaf:
            raise StoreUnavailable("no answer")
        self.marked.append(posting.id)

    @property
    def relay(self) -> Relay:
        return Relay(self, self, self.queue, FakeClock(), Random(1), self.telemetry)  # noqa: S311 - repeatable


def insert(posting: Posting, name: str = "INSERT") -> dict[str, Any]:
    return {"eventSource": "aws:dynamodb", "eventName": name, "dynamodb": {"NewImage": write_posting(posting, START)}}


def test_a_posting_is_written_and_read_back_whole() -> None:
    for posting in (FULL, Posting("p2", "payments", "{}")):
        assert read_posting(write_posting(posting, START)) == posting


def test_postings_go_to_the_queues_of_their_workers_with_delay_and_group() -> None:
    sent = Sent()
    sent.relay.relay([FULL, Posting("p2", "users", "b")])
    assert sent.queues == {
        "payments": [Outgoing("{}", {"trace": "t"}, timedelta(seconds=7), "group", "p1", "shop-1")],
        "users": [Outgoing("b", deduplication="p2")],
    }
    assert sent.marked == ["p1", "p2"]


def test_out_06_what_was_not_sent_is_not_marked_and_fails_the_batch() -> None:
    sent = Sent(refusing={"bad"})
    with pytest.raises(Unavailable, match="1 of 2"):
        sent.relay.relay([Posting("p1", "payments", "good"), Posting("p2", "payments", "bad")])
    assert sent.marked == ["p1"]
    assert sent.telemetry.counts["relayed", NO_JOB_TYPE] == 1


def test_out_05_a_posting_that_was_sent_and_not_marked_is_sent_again_unchanged() -> None:
    sent = Sent(deaf=True)
    for _ in range(2):
        with pytest.raises(Unavailable):
            sent.relay.relay([FULL])
    sent.deaf = False
    sent.relay.relay([FULL])
    assert len(sent.queues["payments"]) == 3
    assert len({message.body for message in sent.queues["payments"]}) == 1


def test_what_the_stream_brings_late_is_sent_with_what_is_left_of_its_delay() -> None:
    late = {"Records": [insert(replace(FULL, delay=timedelta(seconds=600)))]}
    (posting,) = read_stream(late, START + timedelta(seconds=400))
    assert posting.delay == timedelta(seconds=200)


RECORD = "a" * 64


def accepted(record: str = RECORD, **changes: Any) -> Posting:
    body = Message("note", 1, "k", "{}", record=record).body()
    return Posting("p1", "payments", body, **changes)


def test_out_06_whoever_waits_for_a_job_that_can_never_be_sent_is_told_before_it_is_parked() -> None:
    posting = accepted()
    sent = Sent(refusing={posting.body}, final=True)
    steps: list[str] = []
    give_up, park = sent.bury_unbegun, sent.park
    sent.bury_unbegun = lambda *given: steps.append("told") or give_up(*given)  # type: ignore[method-assign, func-returns-value]
    sent.park = lambda *given: steps.append("parked") or park(*given)  # type: ignore[method-assign, func-returns-value]
    sent.relay.relay([posting])
    assert (sent.given_up, sent.parked) == ({RECORD: "Code"}, {"p1": "Code"})
    assert steps == ["told", "parked"]
    sent.relay.relay([accepted("b" * 64)])
    assert sent.given_up == {RECORD: "Code"}  # what can be sent is sent


def test_a_job_that_nobody_waits_for_is_parked_alone() -> None:
    for posting in (accepted(None), Posting("p1", "payments", "no JSON")):  # type: ignore[arg-type]
        sent = Sent(refusing={posting.body}, final=True)
        sent.relay.relay([posting])
        assert (sent.given_up, sent.parked) == ({}, {"p1": "Code"})


def test_a_job_is_told_whatever_its_message_is_encoded_in() -> None:
    plain = accepted()
    posting = replace(
        plain, body=base64.b64encode(plain.body.encode()).decode(), attributes={"content-encoding": "base64"}
    )
    sent = Sent(refusing={posting.body}, final=True)
    sent.relay.relay([posting])
    assert (sent.given_up, sent.parked) == ({RECORD: "Code"}, {"p1": "Code"})


def test_a_message_of_a_later_deploy_is_parked_and_stops_nobody() -> None:
    body = json.dumps({**json.loads(accepted().body), "format": FORMAT + 1})
    posting = Posting("p1", "payments", body)
    sent = Sent(refusing={body}, final=True)
    sent.relay.relay([posting, accepted("b" * 64)])
    assert (sent.given_up, sent.parked) == ({}, {"p1": "Code"})


def test_only_inserts_are_relayed() -> None:
    event = {"Records": [insert(FULL), insert(FULL, "MODIFY"), {**insert(FULL), "eventName": "REMOVE"}]}
    assert read_stream(event, START) == [FULL]


@pytest.mark.parametrize("event", [None, {}, {"Records": []}, {"Records": [{"eventSource": "aws:sqs"}]}])
def test_another_event_is_loud(event: Any) -> None:
    with pytest.raises(EventError):
        read_stream(event, START)


def test_a_stream_without_new_images_is_loud() -> None:
    event = {"Records": [{"eventSource": "aws:dynamodb", "eventName": "INSERT", "dynamodb": {"Keys": {}}}]}
    with pytest.raises(EventError, match="holds no NewImage: let the stream of the outbox table bring new images"):
        read_stream(event, START)


def test_marking_is_repeatable_and_forgives_an_item_that_has_expired(aws_endpoint: str) -> None:
    database = Database.create()
    dynamodb = client("dynamodb")
    dynamodb.put_item(TableName=database.outbox_table, Item=write_posting(FULL, START))
    outbox = DynamoDBOutbox(dynamodb, database.outbox_table)
    outbox.mark_sent(FULL, START)
    outbox.mark_sent(FULL, START + timedelta(days=1))
    item = dynamodb.get_item(TableName=database.outbox_table, Key={"lane": {"S": "p1"}, "id": {"S": "p1"}})["Item"]
    assert item["sent_at"]["S"] == START.isoformat()
    assert int(item["ttl"]["N"]) == int((START + timedelta(days=7)).timestamp())
    outbox.mark_sent(replace(FULL, id="gone"), START)
    assert "Item" not in dynamodb.get_item(
        TableName=database.outbox_table, Key={"lane": {"S": "gone"}, "id": {"S": "gone"}}
    )


def test_what_can_never_be_sent_is_parked_with_its_reason_and_stops_nobody() -> None:
    sent = Sent(refusing={"bad"}, final=True)
    sent.relay.relay(
        [Posting("p1", "absent", "x"), Posting("p2", "payments", "bad"), Posting("p3", "payments", "good")]
    )
    assert sent.parked == {"p1": "no worker 'absent' is deployed here", "p2": "Code"}
    assert sent.marked == ["p3"]
    assert sent.telemetry.counts["parked", NO_JOB_TYPE] == 2


def test_a_parked_item_stays_with_its_first_reason(aws_endpoint: str) -> None:
    database = Database.create()
    dynamodb = client("dynamodb")
    dynamodb.put_item(TableName=database.outbox_table, Item=write_posting(FULL, START))
    outbox = DynamoDBOutbox(dynamodb, database.outbox_table)
    outbox.park(FULL, "first")
    outbox.park(FULL, "second")
    item = dynamodb.get_item(TableName=database.outbox_table, Key={"lane": {"S": "p1"}, "id": {"S": "p1"}})["Item"]
    assert item["parked"]["S"] == "first"
    assert "ttl" not in item


def test_a_message_is_posted_once_under_its_id(aws_endpoint: str) -> None:
    database = Database.create()
    outbox = DynamoDBOutbox(client("dynamodb"), database.outbox_table)
    outbox.post(FULL, START)
    outbox.mark_sent(FULL, START)
    outbox.post(FULL, START + timedelta(days=1))
    item = database.client.get_item(TableName=database.outbox_table, Key={"lane": {"S": "p1"}, "id": {"S": "p1"}})[
        "Item"
    ]
    assert item["created_at"]["S"] == item["sent_at"]["S"] == START.isoformat()
