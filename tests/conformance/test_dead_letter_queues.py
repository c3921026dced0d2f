"""What every dead-letter queue promises the operator's desk: the twin in memory, and SQS as moto has it over HTTP."""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from shared.backends.aws import client
from shared.backends.memory.dead_letters import MemoryDeadLetters
from shared.backends.memory.queue import MemoryQueue
from shared.backends.sqs.dead_letters import SqsDeadLetters
from shared.backends.sqs.queue import SqsQueue
from shared.desk.dead_letter_queue import Copy, Redrive
from shared.producer import NotTaken
from tests.aws import create_queue
from tests.conformance.deliveries import delivery
from tests.world import FakeClock

if TYPE_CHECKING:
    from collections.abc import Callable

    from shared.delivery import Delivery
    from shared.desk.dead_letter_queue import DeadLetterQueue
from shared.errors import Unavailable

HIDDEN = timedelta(seconds=2)
TRACE = "Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=1"
ATTRIBUTES = {
    "text": {"stringValue": "a", "dataType": "String"},
    "number": {"stringValue": "0.10", "dataType": "Number"},
    "bytes": {"binaryValue": "AP8=", "dataType": "Binary"},
    "json": {"stringValue": "{}", "dataType": "String.Json"},
}


@dataclass
class Bench:
    """A dead-letter queue, its source, and time."""

    queue: Any
    letters: DeadLetterQueue
    source: Callable[[], list[Delivery]]
    wait: Callable[[float], None]

    def bury(self, *bodies: str, group: str | None = None, **record: Any) -> None:
        for number, body in enumerate(bodies):
            made = delivery(body, message_id=f"m{number}-{uuid.uuid4().hex}", group=group, **record)
            self.queue.dead_letter(made, json.dumps({"reason": "unknown-order", "death": 1}))


@pytest.fixture(params=["memory", "moto"])
def make(request: pytest.FixtureRequest) -> Callable[[bool], Bench]:
    def bench(fifo: bool) -> Bench:
        if request.param == "memory":
            clock = FakeClock()
            queue = MemoryQueue(clock, fifo=fifo)
            letters = MemoryDeadLetters(queue)
            source = MemoryDeadLetters(MemoryQueue(clock))

            def received() -> list[Delivery]:
                source.queue.dead.extend(queue.messages.values())
                return list(source.receive(HIDDEN))

            return Bench(queue, letters, received, lambda seconds: clock.pass_(timedelta(seconds=seconds)))
        request.getfixturevalue("aws_endpoint")
        sqs = client("sqs")
        if fifo:
            name = uuid.uuid4().hex
            urls = [
                sqs.create_queue(QueueName=f"{name}-{kind}.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"]
                for kind in ("source", "dead")
            ]
        else:
            urls = list(create_queue(sqs))
        source_url, url = urls
        mine = SqsDeadLetters(sqs, url, source_url, wait=0, traces_alone=True)  # moto is a stand-in
        reads = SqsDeadLetters(sqs, source_url, url, wait=0)
        return Bench(
            SqsQueue(sqs, source_url, url), mine, lambda: list(reads.receive(HIDDEN)), lambda s: time.sleep(s + 0.1)
        )

    return bench


@pytest.fixture
def bench(make: Callable[[bool], Bench]) -> Bench:
    return make(False)


def copy_of(letter: Delivery, name: str = "d") -> Copy:
    return Copy(letter.body, letter.attributes, letter.group, letter.trace, name)


def test_a_letter_is_received_with_all_that_it_has_and_hidden_for_a_while(bench: Bench) -> None:
    bench.bury("one", attributes=ATTRIBUTES, group="g", system={"AWSTraceHeader": TRACE})
    (letter,) = bench.letters.receive(HIDDEN)
    assert (letter.body, letter.group, letter.trace, letter.death) == ("one", "g", TRACE, 1)
    assert {name: letter.attributes[name]["dataType"] for name in ATTRIBUTES} == {
        name: value["dataType"] for name, value in ATTRIBUTES.items()
    }
    assert letter.attributes["bytes"]["binaryValue"] == "AP8="
    assert list(bench.letters.receive(HIDDEN)) == []
    assert bench.letters.depth() == 1
    bench.wait(HIDDEN.total_seconds())
    assert [again.message_id for again in bench.letters.receive(HIDDEN)] == [letter.message_id]


def test_what_is_given_back_is_there_for_others_at_once(bench: Bench) -> None:
    bench.bury(*(str(number) for number in range(12)))
    held = [*bench.letters.receive(HIDDEN), *bench.letters.receive(HIDDEN)]
    assert len(held) == 12
    bench.letters.give_back(held)
    assert len(bench.letters.receive(HIDDEN)) == 10


def test_dlq_01_a_copy_has_the_body_the_attributes_of_every_type_the_group_and_the_trace(bench: Bench) -> None:
    bench.bury("one", attributes=ATTRIBUTES, group="g", system={"AWSTraceHeader": TRACE})
    (letter,) = bench.letters.receive(HIDDEN)
    (sent,) = bench.letters.send([copy_of(letter)])
    (copy,) = bench.source()
    assert (copy.body, copy.group, copy.trace) == ("one", "g", TRACE)
    assert copy.message_id == sent
    for name, value in ATTRIBUTES.items():
        kept = copy.attributes[name]
        assert {field: kept[field] for field in value} == value


def test_dlq_09_what_is_deleted_by_its_receipt_is_gone_and_nothing_else(bench: Bench) -> None:
    bench.bury("one", "two", "three")
    held = {letter.body: letter for letter in bench.letters.receive(HIDDEN)}
    chosen = [held["one"], held["three"]]
    assert bench.letters.delete(chosen) == {letter.message_id for letter in chosen}
    bench.letters.delete(chosen)  # again is no error
    bench.letters.give_back([held["two"]])
    assert [letter.body for letter in bench.letters.receive(HIDDEN)] == ["two"]


def test_letters_of_a_fifo_queue_tell_their_order_and_their_copies_keep_their_groups(
    make: Callable[[bool], Bench],
) -> None:
    fifo = make(True)
    assert fifo.letters.fifo
    for name in ("a1", "b1", "a2"):
        fifo.bury(name, group=name[0])
    letters = fifo.letters.receive(HIDDEN)
    assert all(letter.sequence is not None for letter in letters)
    assert [letter.body for letter in letters if letter.group == "a"] == ["a1", "a2"]
    assert list(fifo.letters.receive(HIDDEN)) == []
    fifo.letters.send([copy_of(letter, f"{letter.body}-1") for letter in letters])
    fifo.letters.send([copy_of(letter, f"{letter.body}-1") for letter in letters])  # known by their names
    fifo.letters.send([copy_of(letter, f"{letter.body}-2") for letter in letters if letter.body == "b1"])
    assert sorted((copy.group, copy.body) for copy in fifo.source()) == [
        ("a", "a1"),
        ("a", "a2"),
        ("b", "b1"),
        ("b", "b1"),
    ]


def test_there_is_no_redrive_where_nobody_has_begun_one(bench: Bench) -> None:
    assert bench.letters.redrive() is None


class Sqs:
    """A client that answers as AWS is documented to."""

    def __init__(self, tasks: list[dict[str, Any]] | Exception) -> None:
        self.tasks = tasks
        self.cancelled: list[str] = []
        self.alone: list[str] = []

    def get_queue_attributes(self, **_: Any) -> dict[str, Any]:
        return {"Attributes": {"QueueArn": "arn:aws:sqs:eu-central-1:000000000000:dead"}}

    def list_message_move_tasks(self, **_: Any) -> dict[str, Any]:
        if isinstance(self.tasks, Exception):
            raise self.tasks
        return {"Results": self.tasks}

    def cancel_message_move_task(self, *, TaskHandle: str) -> None:  # noqa: N803 - as boto3 spells it
        self.cancelled.append(TaskHandle)

    def send_message(self, *, MessageBody: str, **_: Any) -> dict[str, str]:  # noqa: N803 - as boto3 spells it
        self.alone.append(MessageBody)
        if MessageBody == "bad":
            raise ClientError({"Error": {"Code": "InvalidMessageContents", "Message": "x"}}, "SendMessage")
        return {"MessageId": f"m-{MessageBody}"}

    def send_message_batch(self, **asked: Any) -> dict[str, Any]:
        self.entries: list[dict[str, Any]] = asked["Entries"]
        return {
            "Successful": [{"Id": "1", "MessageId": "m1"}] if len(asked["Entries"]) > 1 else [],
            "Failed": [{"Id": asked["Entries"][0]["Id"], "Code": "Throttled", "SenderFault": False}],
        }

    def delete_message_batch(self, **_: Any) -> dict[str, Any]:
        return {"Successful": [{"Id": "1"}], "Failed": [{"Id": "0", "Code": "x", "SenderFault": False}]}


def test_dlq_06_a_running_redrive_of_aws_is_told_with_its_progress_and_can_be_cancelled() -> None:
    running = {
        "Status": "RUNNING",
        "TaskHandle": "h",
        "ApproximateNumberOfMessagesMoved": 3,
        "ApproximateNumberOfMessagesToMove": 50,
    }
    sqs = Sqs([running])
    letters = SqsDeadLetters(sqs, "dead", "source")
    assert letters.redrive() == Redrive("h", 3, 50)
    letters.cancel(Redrive("h", 3, 50))
    assert sqs.cancelled == ["h"]
    assert SqsDeadLetters(Sqs([{"Status": "COMPLETED"}]), "dead", "source").redrive() is None


def test_loc_02_an_endpoint_without_move_tasks_has_no_redrive() -> None:
    unknown = ClientError({"Error": {"Code": "InvalidAction", "Message": "x"}}, "ListMessageMoveTasks")
    assert SqsDeadLetters(Sqs(unknown), "dead", "source").redrive() is None
    denied = ClientError({"Error": {"Code": "AccessDenied", "Message": "x"}}, "ListMessageMoveTasks")
    with pytest.raises(Unavailable):
        SqsDeadLetters(Sqs(denied), "dead", "source").redrive()


def test_dlq_04_what_sqs_does_not_name_is_neither_sent_nor_deleted() -> None:
    sqs = Sqs([])
    letters = SqsDeadLetters(sqs, "dead", "source")
    three = [delivery(str(number), message_id=f"m{number}") for number in range(3)]
    traced = [*map(copy_of, three[:2]), replace(copy_of(three[2]), trace=TRACE)]
    assert letters.send(traced) == [
        NotTaken("Throttled", final=False),
        "m1",
        NotTaken("NotMentioned", final=False),
    ]
    assert sqs.entries[2]["MessageSystemAttributes"]["AWSTraceHeader"]["StringValue"] == TRACE
    assert letters.delete(three) == {"m1"}


def test_a_traced_copy_that_is_refused_alone_costs_its_neighbours_nothing() -> None:
    sqs = Sqs([])
    letters = SqsDeadLetters(sqs, "dead", "source", traces_alone=True)
    traced = [replace(copy_of(delivery(body)), trace=TRACE) for body in ("bad", "good")]
    answers = letters.send([*traced, copy_of(delivery("plain"))])
    assert isinstance(answers[0], NotTaken)
    assert (answers[0].final, answers[1], sqs.alone) == (True, "m-good", ["bad", "good"])
    assert [entry["MessageBody"] for entry in sqs.entries] == ["plain"]
    assert letters.send(traced[1:]) == ["m-good"]


def test_originals_that_were_folded_into_a_reason_stay_with_the_message_at_its_next_death() -> None:
    queue = MemoryQueue(FakeClock())
    ten = {f"a{number}": {"stringValue": str(number), "dataType": "String"} for number in range(10)}
    queue.dead_letter(delivery("x", attributes=ten), json.dumps({"reason": "r", "death": 1}))
    (letter,) = MemoryDeadLetters(queue).receive(HIDDEN)
    queue.dead.clear()
    queue.dead_letter(letter, json.dumps({"reason": "r", "death": 2}))
    (again,) = MemoryDeadLetters(queue).receive(HIDDEN)
    facts = json.loads(again.text_attribute("tahan.dead-letter") or "")
    assert (facts["death"], facts["attributes"]["a9"]["stringValue"]) == (2, "9")
