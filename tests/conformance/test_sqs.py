"""The queue on SQS, over HTTP."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from shared.backends.aws import client
from shared.backends.sqs.queue import SqsQueue
from shared.delivery import DEAD_LETTER_ATTRIBUTE
from shared.errors import Refused, Unavailable
from shared.job import JobTypes
from shared.limits import MESSAGE_BYTES
from shared.producer import NotTaken, Outgoing
from shared.runtime import producer
from shared.wire.parsing import read_message, typed_payload
from tests.aws import create_queue
from tests.conformance.deliveries import delivery
from tests.world import Note, body, note_job

REASON = json.dumps({"reason": "unknown-order", "death": 1})


@pytest.fixture(scope="module")
def queue(aws_endpoint: str) -> SqsQueue:
    sqs = client("sqs")
    return SqsQueue(sqs, *create_queue(sqs))


def received(queue: SqsQueue, url: str) -> dict[str, Any]:
    answer = queue.client.receive_message(QueueUrl=url, MessageAttributeNames=["All"], AttributeNames=["All"])
    (message,) = answer["Messages"]
    queue.client.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    result: dict[str, Any] = message
    return result


def test_a_message_arrives_as_it_was_sent(queue: SqsQueue) -> None:
    text = '{"text":"\u4e2d\U0001f600\\ufffe"}'
    (sent,) = queue.send([Outgoing(text, {"trace": "abc"})])
    message = received(queue, queue.url)
    assert (message["MessageId"], message["Body"]) == (sent, text)
    assert message["MessageAttributes"]["trace"]["StringValue"] == "abc"


def test_out_06_entries_are_told_apart_by_place() -> None:
    class Stub:
        def send_message_batch(self, **request: Any) -> dict[str, Any]:
            return {
                "Successful": [{"Id": "2", "MessageId": "m2"}],
                "Failed": [
                    {"Id": "0", "Code": "Throttled", "SenderFault": False},
                    {"Id": "3", "Code": "InvalidMessageContents", "SenderFault": True},
                ],
            }

    answers = SqsQueue(Stub(), "u").send([Outgoing(str(number)) for number in range(4)])
    assert answers == [
        NotTaken("Throttled", final=False),
        NotTaken("NotMentioned", final=False),
        "m2",
        NotTaken("InvalidMessageContents", final=True),
    ]


def test_a_dead_letter_keeps_body_and_attributes_and_gains_its_reason(queue: SqsQueue) -> None:
    attributes = {
        "text": {"stringValue": "a", "dataType": "String"},
        "number": {"stringValue": "0.10", "dataType": "Number"},
        "bytes": {"binaryValue": "AP8=", "dataType": "Binary"},
        "json": {"stringValue": "{}", "dataType": "String.Json"},
    }
    queue.dead_letter(delivery(body(), attributes=attributes), REASON)
    message = received(queue, queue.dead_letter_url)
    assert message["Body"] == body()
    kept = message["MessageAttributes"]
    assert kept["number"] == {"StringValue": "0.10", "DataType": "Number"}
    assert kept["bytes"]["BinaryValue"] == b"\x00\xff"
    assert kept["json"]["DataType"] == "String.Json"
    assert json.loads(kept[DEAD_LETTER_ATTRIBUTE]["StringValue"])["reason"] == "unknown-order"


def test_a_second_death_replaces_the_first_reason(queue: SqsQueue) -> None:
    queue.dead_letter(delivery(death=1), json.dumps({"reason": "again", "death": 2}))
    kept = received(queue, queue.dead_letter_url)["MessageAttributes"]
    assert json.loads(kept[DEAD_LETTER_ATTRIBUTE]["StringValue"]) == {"reason": "again", "death": 2}


def test_ten_attributes_travel_within_the_reason(queue: SqsQueue) -> None:
    attributes = {f"a{number}": {"stringValue": str(number), "dataType": "String"} for number in range(10)}
    queue.dead_letter(delivery(attributes=attributes), REASON)
    kept = received(queue, queue.dead_letter_url)["MessageAttributes"]
    reason = json.loads(kept[DEAD_LETTER_ATTRIBUTE]["StringValue"])
    assert (reason["reason"], reason["attributes"]["a9"]["stringValue"]) == ("unknown-order", "9")


def test_ten_attributes_keep_the_one_that_says_how_to_read_the_body(queue: SqsQueue) -> None:
    attributes = {f"a{number}": {"stringValue": str(number), "dataType": "String"} for number in range(9)}
    attributes["content-encoding"] = {"stringValue": "base64", "dataType": "String"}
    queue.dead_letter(delivery(attributes=attributes), REASON)
    kept = received(queue, queue.dead_letter_url)["MessageAttributes"]
    assert kept["content-encoding"]["StringValue"] == "base64"
    assert set(kept) == {"content-encoding", DEAD_LETTER_ATTRIBUTE}


def test_a_dead_letter_with_little_room_says_at_least_why(queue: SqsQueue) -> None:
    reason = json.dumps({"reason": "malformed-json", "death": 1, "error": "x" * 200})
    queue.dead_letter(delivery("x" * (MESSAGE_BYTES - 100)), reason)
    kept = received(queue, queue.dead_letter_url)["MessageAttributes"]
    assert json.loads(kept[DEAD_LETTER_ATTRIBUTE]["StringValue"]) == {"reason": "malformed-json", "death": 1}


@pytest.mark.usefixtures("aws_endpoint")
def test_a_fifo_queue_gets_what_the_relay_sends_with_and_without_a_group() -> None:
    sqs = client("sqs")
    url = sqs.create_queue(QueueName="relayed.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"]
    fifo = SqsQueue(sqs, url)
    messages = [
        Outgoing("one", group="g", deduplication="p1"),
        Outgoing("two", deduplication="p2"),
    ]
    assert all(isinstance(answer, str) for answer in fifo.send(messages))
    got = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, AttributeNames=["All"])["Messages"]
    assert {message["Body"]: message["Attributes"]["MessageGroupId"] for message in got} == {"one": "g", "two": "p2"}


def test_a_dead_letter_without_room_for_its_reason_is_refused(queue: SqsQueue) -> None:
    with pytest.raises(Refused, match="redrive moves it"):
        queue.dead_letter(delivery("x" * MESSAGE_BYTES), REASON)


def test_a_hidden_message_comes_back_when_its_wait_is_over(queue: SqsQueue) -> None:
    queue.send([Outgoing("hidden")])
    (message,) = queue.client.receive_message(QueueUrl=queue.url)["Messages"]
    queue.hide(delivery("hidden", receiptHandle=message["ReceiptHandle"]), timedelta(0))
    again = received(queue, queue.url)
    assert again["Body"] == "hidden"


def test_a_stale_receipt_is_our_error(queue: SqsQueue) -> None:
    with pytest.raises(Refused):
        queue.hide(delivery(), timedelta(0))


def test_no_answer_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(Unavailable):
        SqsQueue(client("sqs"), "http://127.0.0.1:9/q").send([Outgoing("x")])


def test_a_producer_sends_what_the_consumer_reads(queue: SqsQueue) -> None:
    job = note_job()
    sent = producer(queue.url).enqueue(job.message(Note(thing="a", text="\u4e2d\ufffe"), key="k"))
    message = received(queue, queue.url)
    assert message["MessageId"] == sent
    read = read_message(message["Body"])
    assert (read.job_type, read.idempotency_key) == ("note", "k")
    assert typed_payload(read, JobTypes.of(job))[1] == Note(thing="a", text="\u4e2d\ufffe")
