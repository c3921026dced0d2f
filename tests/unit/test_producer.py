"""Sending: what SQS did not take is sent again or reported, never counted as sent."""

from __future__ import annotations

import json
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING

import pytest

from shared.errors import NotSent, Refused, Unavailable
from shared.job_record import SYSTEM, record_id
from shared.limits import MESSAGE_BYTES
from shared.message import Message
from shared.producer import NotTaken, Outgoing, Producer, send_all
from shared.strict_json import json_text
from tests.world import Counter, FakeClock

if TYPE_CHECKING:
    from collections.abc import Sequence

THROTTLED = NotTaken("Throttled", final=False)
REFUSED = NotTaken("InvalidMessageContents", final=True)


class Stub:
    """A queue that answers by the body of a message: how often it still refuses it."""

    def __init__(self, refusals: dict[str, list[NotTaken]] | None = None, *, down: int = 0) -> None:
        self.refusals = refusals or {}
        self.down = down
        self.batches: list[list[Outgoing]] = []

    def send(self, batch: Sequence[Outgoing]) -> Sequence[str | NotTaken]:
        self.batches.append(list(batch))
        if self.down:
            self.down -= 1
            raise Unavailable("no answer", dependency="sqs")
        answers: list[str | NotTaken] = []
        for message in batch:
            waiting = self.refusals.get(message.body)
            answers.append(waiting.pop(0) if waiting else f"id-{message.body}")
        return answers


def producer(stub: Stub, *, fifo: bool = False) -> Producer:
    return Producer(stub, FakeClock(), Random(1), Counter(), fifo)  # noqa: S311 - repeatable


def send(stub: Stub, *bodies: str) -> tuple[list[int], dict[int, str]]:
    report = send_all(stub, [Outgoing(text) for text in bodies], FakeClock(), Random(1))  # noqa: S311
    return sorted(report.sent), {place: failure.code for place, failure in report.failed.items()}


def test_out_06_only_what_sqs_took_counts_as_sent() -> None:
    bodies = [str(number) for number in range(10)]
    stub = Stub({"3": [THROTTLED], "5": [THROTTLED, THROTTLED], "7": [REFUSED] * 9})
    sent, failed = send(stub, *bodies)
    assert (sent, failed) == ([0, 1, 2, 3, 4, 5, 6, 8, 9], {7: "InvalidMessageContents"})
    assert [len(batch) for batch in stub.batches] == [10, 2, 1]


def test_what_stays_throttled_is_reported_after_a_few_rounds() -> None:
    stub = Stub({"a": [THROTTLED] * 99})
    assert send(stub, "a") == ([], {0: "Throttled"})
    assert len(stub.batches) == 4


def test_i13_one_message_for_which_a_whole_batch_is_refused_takes_no_neighbour_along() -> None:
    class Strict(Stub):
        def send(self, batch: Sequence[Outgoing]) -> Sequence[str | NotTaken]:
            if any(message.body == "bad" for message in batch):
                self.batches.append(list(batch))
                text = "sqs refuses it (InvalidParameterValue)."
                raise Refused(text)
            return super().send(batch)

    stub = Strict()
    sent, failed = send(stub, "a", "bad", "b")
    assert (sent, failed) == ([0, 2], {1: "sqs refuses it (InvalidParameterValue)."})
    assert [[message.body for message in batch] for batch in stub.batches] == [["a", "bad", "b"], ["a"], ["bad"], ["b"]]


def test_an_answer_that_never_came_is_asked_again() -> None:
    stub = Stub(down=2)
    assert send(stub, "a", "b") == ([0, 1], {})
    assert len(stub.batches) == 3


def test_batches_hold_ten_messages_and_a_megabyte() -> None:
    stub = Stub()
    send(stub, *[str(number) for number in range(25)])
    assert [len(batch) for batch in stub.batches] == [10, 10, 5]
    stub = Stub()
    send(stub, *["x" * (MESSAGE_BYTES // 3)] * 7)
    assert [len(batch) for batch in stub.batches] == [3, 3, 1]


def test_a_message_carries_a_job_id_and_its_time() -> None:
    stub = Stub()
    producer(stub).enqueue(Message("note", 1, "k", "{}"), delay=timedelta(seconds=5), group="tenant")
    ((sent,),) = stub.batches
    envelope = json.loads(sent.body)
    assert envelope["idempotency_key"] == "k"
    assert len(envelope["job_id"]) == 32
    assert envelope["enqueued_at"] == "2026-01-01T00:00:00+00:00"
    assert (sent.delay, sent.group, sent.deduplication) == (timedelta(seconds=5), "tenant", None)


def test_one_message_that_is_not_taken_is_an_error() -> None:
    with pytest.raises(NotSent, match="same key"):
        producer(Stub(down=99)).enqueue(Message("note", 1, "k", "{}"))


def test_a_message_that_can_never_be_sent_is_refused_before_any_is() -> None:
    stub = Stub()
    large = Message("note", 1, "k", json_text({"text": "x" * MESSAGE_BYTES}))
    with pytest.raises(Refused):
        producer(stub).enqueue_batch([Message("note", 1, "k", "{}"), large])
    with pytest.raises(Refused, match="900"):
        producer(stub).enqueue(Message("note", 1, "k", "{}"), delay=timedelta(hours=1))
    assert stub.batches == []


def test_a_fifo_queue_wants_a_group_and_is_deduplicated_by_the_key() -> None:
    stub = Stub()
    with pytest.raises(Refused, match="wants a group"):
        producer(stub, fifo=True).enqueue(Message("note", 1, "k", "{}"))
    producer(stub, fifo=True).enqueue(Message("note", 1, "k", "{}"), group="g")
    ((sent,),) = stub.batches
    assert sent.deduplication == record_id(SYSTEM, "note", "k")


def test_a_fifo_queue_tells_two_job_types_with_one_key_apart() -> None:
    stub = Stub()
    producer(stub, fifo=True).enqueue_batch(
        [Message("capture", 1, "k", "{}"), Message("refund", 1, "k", "{}")], group="g"
    )
    ((one, two),) = stub.batches
    assert one.deduplication != two.deduplication


@pytest.mark.parametrize("group", ["", " ", "a b", "x" * 129, "\u4e2d"])
def test_a_group_that_sqs_refuses_is_refused(group: str) -> None:
    with pytest.raises(Refused):
        producer(Stub()).enqueue(Message("note", 1, "k", "{}"), group=group)
