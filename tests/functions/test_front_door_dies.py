"""What was accepted is sent and done once, or its client is told: the front door dies, SQS is down, or takes it never."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from functions import front_door, outbox_relay
from shared.backends.dynamodb.acceptances import DynamoDBAcceptances
from shared.errors import Unavailable
from tests.door import Client, payload
from tests.dying import Killed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.stack import Stack


def dies_after_the_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    accept = DynamoDBAcceptances.accept

    def die(self: DynamoDBAcceptances, *asked: Any) -> Any:
        accept(self, *asked)
        raise Killed

    monkeypatch.setattr(DynamoDBAcceptances, "accept", die)


class Down:
    """A queue of an SQS that does not answer."""

    def send(self, batch: Sequence[object]) -> Any:
        message = "no answer"
        raise Unavailable(message, dependency="sqs")


def test_out_04_what_was_accepted_when_the_front_door_died_is_sent_and_done_once(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    for order in ("out-04-a", "out-04-b"):
        stack.seed(**payload(order), user_id="out-04")
        with monkeypatch.context() as patched:
            dies_after_the_commit(patched)
            with pytest.raises(Killed):  # the client gets no answer at all
                Client(front_door.connect(stack.settings)).post(payload(order), key=order, user="out-04")
    http = Client(front_door.connect(stack.settings))
    operations = http.list(user="out-04")[1]["operations"]
    assert [operation["status"] for operation in operations] == ["pending", "pending"]
    items = stack.database.client.scan(TableName=stack.settings.outbox_table, ConsistentRead=True)["Items"]
    waiting = [item for item in items if '"out-04-' in item["body"]["S"]]
    assert len(waiting) == 2
    records = [
        {"eventSource": "aws:dynamodb", "eventName": "INSERT", "dynamodb": {"NewImage": item}} for item in waiting
    ]
    postings = outbox_relay.read_stream({"Records": records}, stack.relay.clock.now())
    down = replace(stack.relay, queues=lambda _: Down())
    for _ in range(3):  # as long as SQS is down the stream delivers the batch again, and nothing is marked
        with pytest.raises(Unavailable):
            down.relay(postings)
    assert stack.is_at_rest() is False
    stack.run()
    for operation in operations:
        assert http.get(operation["operation_id"], user="out-04")[1]["status"] == "done"
    for order in ("out-04-a", "out-04-b"):
        again = http.post(payload(order), key=order, user="out-04")
        assert (again[0], again[1]["status"], again[2]["Idempotent-Replayed"]) == (202, "done", "true")
        assert len(stack.provider.ledger.charges_of(f"pi_ok_{order}")) == 1


def test_out_06_a_client_is_told_of_a_job_that_can_never_be_sent(stack: Stack) -> None:
    stack.seed(**payload("out-06"), user_id="out-06")
    http = Client(front_door.connect(stack.settings))
    operation = http.post(payload("out-06"), key="out-06", user="out-06")[1]["operation_id"]
    nowhere = replace(stack.relay, queues=lambda _: None)  # its worker is not deployed any more
    items = stack.database.client.scan(TableName=stack.settings.outbox_table, ConsistentRead=True)["Items"]
    (item,) = [item for item in items if '"out-06"' in item["body"]["S"]]
    record = {"eventSource": "aws:dynamodb", "eventName": "INSERT", "dynamodb": {"NewImage": item}}
    nowhere.relay(outbox_relay.read_stream({"Records": [record]}, nowhere.clock.now()))
    seen = http.get(operation, user="out-06")[1]
    assert (seen["status"], seen["error"]) == ("dead-lettered", {"code": "not-sendable"})
