"""What every queue promises: the twin in memory, and SQS as moto has it over HTTP."""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from local.invoking.event_source_mapping import record_of
from shared.backends.aws import client
from shared.backends.memory.queue import MemoryQueue
from shared.backends.sqs.attributes import to_event
from shared.backends.sqs.queue import SqsQueue
from shared.delivery import Delivery, read_event
from shared.errors import Refused
from shared.producer import Outgoing, group_of
from tests.aws import create_queue
from tests.world import FakeClock

if TYPE_CHECKING:
    from collections.abc import Callable

VISIBILITY = 2
RECEIVES = 3


class Queue(Protocol):
    """A queue as the product and Lambda use it together."""

    store: Any

    def receive(self, most: int = 10) -> list[Delivery]: ...

    def delete(self, delivery: Delivery) -> None: ...

    def wait(self, seconds: float) -> None: ...

    def dead(self) -> list[tuple[str, dict[str, Any]]]: ...


@dataclass
class Memory:
    """The twin."""

    store: MemoryQueue
    clock: FakeClock

    def receive(self, most: int = 10) -> list[Delivery]:
        records = self.store.receive(most)
        return list(read_event({"Records": records})) if records else []

    def delete(self, delivery: Delivery) -> None:
        self.store.delete(delivery.receipt_handle)

    def wait(self, seconds: float) -> None:
        self.clock.pass_(timedelta(seconds=seconds))

    def dead(self) -> list[tuple[str, dict[str, Any]]]:
        self.store.receive()  # what was received too often is moved when it would be received again
        return [(letter.body, to_event(letter.attributes)) for letter in self.store.dead]


@dataclass
class Moto:
    """SQS over HTTP."""

    store: SqsQueue

    def receive(self, most: int = 10) -> list[Delivery]:
        answer = self.store.client.receive_message(
            QueueUrl=self.store.url,
            MaxNumberOfMessages=most,
            MessageAttributeNames=["All"],
            AttributeNames=["All"],
        )
        records = [record_of(message, self.store.url) for message in answer.get("Messages", [])]
        return list(read_event({"Records": records})) if records else []

    def delete(self, delivery: Delivery) -> None:
        self.store.client.delete_message(QueueUrl=self.store.url, ReceiptHandle=delivery.receipt_handle)

    def wait(self, seconds: float) -> None:
        time.sleep(seconds + 0.1)

    def dead(self) -> list[tuple[str, dict[str, Any]]]:
        self.receive()
        answer = self.store.client.receive_message(
            QueueUrl=self.store.dead_letter_url, MaxNumberOfMessages=10, MessageAttributeNames=["All"]
        )
        return [(m["Body"], to_event(m.get("MessageAttributes", {}))) for m in answer.get("Messages", [])]


@pytest.fixture(params=["memory", "moto"])
def make(request: pytest.FixtureRequest) -> Callable[[bool], Queue]:
    def standard_or_fifo(fifo: bool) -> Queue:
        if request.param == "memory":
            clock = FakeClock()
            return Memory(MemoryQueue(clock, timedelta(seconds=VISIBILITY), RECEIVES, fifo=fifo), clock)
        request.getfixturevalue("aws_endpoint")
        sqs = client("sqs")
        if not fifo:
            return Moto(SqsQueue(sqs, *create_queue(sqs, visibility=VISIBILITY, receives=RECEIVES)))
        attributes = {"FifoQueue": "true", "VisibilityTimeout": str(VISIBILITY)}
        url = sqs.create_queue(QueueName=f"{uuid.uuid4().hex}.fifo", Attributes=attributes)["QueueUrl"]
        return Moto(SqsQueue(sqs, url))

    return standard_or_fifo


@pytest.fixture
def queue(make: Callable[[bool], Queue]) -> Queue:
    return make(False)


def test_what_is_sent_is_received_with_body_attributes_and_group(queue: Queue) -> None:
    ids = queue.store.send([Outgoing("one", {"trace": "abc"}, group="g"), Outgoing("two")])
    got = {delivery.body: delivery for delivery in queue.receive()}
    assert set(got) == {"one", "two"}
    assert [got["one"].message_id, got["two"].message_id] == list(ids)
    assert got["one"].text_attribute("trace") == "abc"
    assert got["one"].string_attributes == {"trace": "abc"}
    assert (got["one"].group, got["two"].group) == ("g", None)
    assert got["one"].receive_count == 1
    assert got["one"].sent_at is not None


def test_i43_a_tenant_is_the_group_of_a_message_that_names_none(queue: Queue) -> None:
    queue.store.send(
        [Outgoing("mine", tenant="shop-1"), Outgoing("ours", group="g", tenant="shop-1"), Outgoing("long", tenant="é")]
    )
    groups = {delivery.body: delivery.group for delivery in queue.receive()}
    assert groups == {"mine": "shop-1", "ours": "g", "long": group_of("é")}


def test_a_fifo_queue_leaves_the_tenant_out(make: Callable[[bool], Queue]) -> None:
    queue = make(True)
    queue.store.send([Outgoing("x", deduplication="d1", tenant="shop-1"), Outgoing("y", group="g", deduplication="d2")])
    assert {delivery.body: delivery.group for delivery in queue.receive()} == {"x": "d1", "y": "g"}


def test_a_received_message_is_hidden_and_comes_back_with_its_receives_counted(queue: Queue) -> None:
    queue.store.send([Outgoing("x")])
    (first,) = queue.receive()
    assert queue.receive() == []
    queue.wait(VISIBILITY)
    (second,) = queue.receive()
    assert (second.message_id, second.receive_count) == (first.message_id, 2)
    assert second.receipt_handle != first.receipt_handle


def test_a_deleted_message_never_comes_back(queue: Queue) -> None:
    queue.store.send([Outgoing("x")])
    (delivery,) = queue.receive()
    queue.delete(delivery)
    queue.delete(delivery)
    queue.wait(VISIBILITY)
    assert queue.receive() == []


def test_a_message_is_hidden_for_as_long_as_asked_also_for_less_than_the_queue_says(queue: Queue) -> None:
    queue.store.send([Outgoing("x")])
    (delivery,) = queue.receive()
    queue.store.hide(delivery, timedelta(0))
    (again,) = queue.receive()
    queue.store.hide(again, timedelta(seconds=VISIBILITY + 1))
    queue.wait(VISIBILITY)
    assert queue.receive() == []
    queue.wait(1)
    assert len(queue.receive()) == 1


def test_a_part_of_a_second_is_hidden_as_a_whole_one(queue: Queue) -> None:
    queue.store.send([Outgoing("x")])
    (delivery,) = queue.receive()
    queue.store.hide(delivery, timedelta(milliseconds=10))
    queue.wait(0.2)
    assert queue.receive() == []


def test_only_a_message_in_flight_can_be_hidden(queue: Queue) -> None:
    queue.store.send([Outgoing("x")])
    (delivery,) = queue.receive()
    queue.delete(delivery)
    with pytest.raises(Refused):
        queue.store.hide(delivery, timedelta(seconds=1))


def test_no_message_is_hidden_for_more_than_12_hours(queue: Queue) -> None:
    queue.store.send([Outgoing("x")])
    (delivery,) = queue.receive()
    with pytest.raises(Refused):
        queue.store.hide(delivery, timedelta(hours=12, seconds=1))
    queue.store.hide(delivery, timedelta(seconds=1))


def test_a_delayed_message_is_not_there_before_its_time(queue: Queue) -> None:
    queue.store.send([Outgoing("x", delay=timedelta(seconds=1))])
    assert queue.receive() == []
    queue.wait(1)
    assert len(queue.receive()) == 1


def test_a_message_that_was_received_too_often_is_moved_to_the_dead_letters_without_a_reason(queue: Queue) -> None:
    queue.store.send([Outgoing("poison", {"trace": "abc"})])
    for count in range(1, RECEIVES + 1):
        (delivery,) = queue.receive()
        assert delivery.receive_count == count
        queue.store.hide(delivery, timedelta(0))
    ((body, attributes),) = queue.dead()
    assert body == "poison"
    assert set(attributes) == {"trace"}
    assert queue.receive() == []


def test_a_dead_letter_has_its_body_its_attributes_and_its_reason(queue: Queue) -> None:
    queue.store.send([Outgoing("x", {"trace": "abc"})])
    (delivery,) = queue.receive()
    queue.store.dead_letter(delivery, json.dumps({"reason": "unknown-order", "death": 1}))
    queue.delete(delivery)
    ((body, attributes),) = queue.dead()
    assert (body, attributes["trace"]["stringValue"]) == ("x", "abc")
    assert json.loads(attributes["tahan.dead-letter"]["stringValue"])["reason"] == "unknown-order"


def test_a_receive_gives_at_most_as_many_as_asked(queue: Queue) -> None:
    queue.store.send([Outgoing(str(number)) for number in range(5)])
    assert [len(queue.receive(3)), len(queue.receive(3)), len(queue.receive(3))] == [3, 2, 0]


def test_bat_05_a_fifo_group_is_received_in_order_and_waits_for_what_is_in_flight(
    make: Callable[[bool], Queue],
) -> None:
    fifo = make(True)
    fifo.store.send(
        [
            Outgoing("a1", group="a", deduplication="a1"),
            Outgoing("a2", group="a", deduplication="a2"),
            Outgoing("b1", group="b", deduplication="b1"),
        ]
    )
    (first,) = fifo.receive(1)
    assert first.body == "a1"
    (other,) = fifo.receive(1)
    assert other.body == "b1"
    assert fifo.receive() == []
    fifo.delete(first)
    (next_,) = fifo.receive()
    assert (next_.body, next_.group) == ("a2", "a")


def test_one_receive_takes_several_messages_of_a_fifo_group(make: Callable[[bool], Queue]) -> None:
    fifo = make(True)
    fifo.store.send([Outgoing(name, group="a", deduplication=name) for name in ("a1", "a2", "a3")])
    assert [delivery.body for delivery in fifo.receive()] == ["a1", "a2", "a3"]


def test_the_twin_hides_no_message_that_has_come_back() -> None:
    """SQS answers MessageNotInflight; moto does not."""
    twin = Memory(MemoryQueue(FakeClock()), FakeClock())
    twin.store.send([Outgoing("x")])
    (delivery,) = twin.receive()
    twin.store.hide(delivery, timedelta(0))
    with pytest.raises(Refused):
        twin.store.hide(delivery, timedelta(seconds=1))


def test_the_twin_knows_only_the_last_receipt_of_a_message() -> None:
    """As bad as SQS may be: an older receipt of a standard queue may do nothing."""
    twin = Memory(MemoryQueue(FakeClock()), FakeClock())
    twin.store.send([Outgoing("x")])
    (first,) = twin.receive()
    twin.store.hide(first, timedelta(0))
    (second,) = twin.receive()
    twin.delete(first)
    with pytest.raises(Refused):
        twin.store.hide(first, timedelta(seconds=1))
    twin.store.hide(second, timedelta(0))
    assert len(twin.receive()) == 1


def test_a_fifo_queue_takes_a_message_once(make: Callable[[bool], Queue]) -> None:
    fifo = make(True)
    message = Outgoing("x", group="g", deduplication="d")
    fifo.store.send([message])
    fifo.store.send([message])
    assert len(fifo.receive()) == 1


def test_a_fifo_queue_refuses_a_delay_for_good_and_takes_its_neighbours(make: Callable[[bool], Queue]) -> None:
    fifo = make(True)
    minute = timedelta(minutes=1)
    messages = [
        Outgoing(name, delay=delay, group="a", deduplication=name)
        for name, delay in (("late", minute), ("now", timedelta(0)))
    ]
    late, now = fifo.store.send(messages)
    assert (late.code, late.final) == ("DelayOnFifo", True)
    assert isinstance(now, str)
    assert [delivery.body for delivery in fifo.receive()] == ["now"]
    (again,) = fifo.store.send(messages[:1])
    assert again == late
