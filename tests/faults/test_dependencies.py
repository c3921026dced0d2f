"""What DynamoDB and SQS do on a bad day, on the wire: throttling, lost replies, hanging, resets. Each fault is proved to have fired."""

from __future__ import annotations

import json
import time
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from functions import outbox_relay, payments
from local.invoking.event_source_mapping import EventSourceMapping
from local.processes.children import Children
from shared.backends.aws import client
from shared.consumer import Consumer
from shared.errors import EventError, Unavailable
from shared.outbox import Posting
from shared.runtime import connect
from tests.faults.burst import Burst, start
from tests.faults.jobs import BREWS, CRASHING
from tests.stack import new_stack
from tests.world import Context

if TYPE_CHECKING:
    from collections.abc import Iterator

    from local.outside.payment_provider import Provider
    from local.stack.valkey import Valkey


@pytest.fixture(scope="module")
def burst(aws_endpoint: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Burst]:
    with Children() as children:
        yield start(children, aws_endpoint, tmp_path_factory.mktemp("burst"))


LOST = {"response": {"abort_bytes": 0}}
THROTTLED = {"error": {"code": "ProvisionedThroughputExceededException"}}
FAULTS = {
    "the claim's reply is lost once": ({"service": "dynamodb", "operation": "UpdateItem", "times": 1, **LOST}, 1),
    "the claim's replies are all lost": ({"service": "dynamodb", "operation": "UpdateItem", "times": 3, **LOST}, 3),
    "the claim is throttled once": ({"service": "dynamodb", "operation": "UpdateItem", "times": 1, **THROTTLED}, 1),
    "the claim is throttled for good": ({"service": "dynamodb", "operation": "UpdateItem", "times": 3, **THROTTLED}, 3),
    "a read is throttled for good": ({"service": "dynamodb", "operation": "GetItem", "times": 3, **THROTTLED}, 3),
    "the commit's reply is lost once": (
        {"service": "dynamodb", "operation": "TransactWriteItems", "times": 1, **LOST},
        1,
    ),
    "the commit's replies are all lost": (
        {"service": "dynamodb", "operation": "TransactWriteItems", "times": 3, **LOST},
        3,
    ),
    "the commit hangs": ({"service": "dynamodb", "operation": "TransactWriteItems", "times": 1, "timeout_ms": 4000}, 1),
    "the commit is reset": ({"service": "dynamodb", "operation": "TransactWriteItems", "times": 1, "reset": True}, 1),
    "the commit is in the way of another": (
        {
            "service": "dynamodb",
            "operation": "TransactWriteItems",
            "times": 1,
            "error": {
                "code": "TransactionCanceledException",
                "status": 400,
                "fields": {"CancellationReasons": [{"Code": "None"}, {"Code": "TransactionConflict"}]},
            },
        },
        1,
    ),
    "the credentials have expired": (
        {"service": "dynamodb", "times": 3, "error": {"code": "ExpiredTokenException", "status": 400}},
        1,
    ),
    "the clock is off": (
        {"service": "dynamodb", "times": 3, "error": {"code": "RequestTimeTooSkewed", "status": 403}},
        1,
    ),
    "the key cannot be used": (
        {"service": "dynamodb", "times": 3, "error": {"code": "KMSThrottlingException", "status": 400}},
        1,
    ),
    "the permission is missing": (
        {"service": "dynamodb", "times": 1, "error": {"code": "AccessDeniedException", "status": 400}},
        1,
    ),
    "a message cannot be deleted": (
        {
            "service": "sqs",
            "operation": "DeleteMessage",
            "times": 3,
            "error": {"code": "ServiceUnavailable", "status": 503},
        },
        3,
    ),
    "the deletion's reply is lost": ({"service": "sqs", "operation": "DeleteMessage", "times": 3, **LOST}, 1),
    "DynamoDB is gone": ({"service": "dynamodb", "reset": True}, 3),
}


def run_a_batch(mapping: EventSourceMapping) -> None:
    """Run the one message there is; on a busy machine the reply to a first receive may be late, and so lost."""
    deadline = time.monotonic() + 60
    while not mapping.poll():
        assert time.monotonic() < deadline
        time.sleep(0.2)


@pytest.mark.parametrize("name", FAULTS)
def test_a_capture_is_charged_and_paid_once_whatever_the_stores_do(
    name: str,
    burst: Burst,
    valkey: Valkey,
    provider: Provider,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    rule, least = FAULTS[name]
    stack = new_stack(valkey, provider, visibility=5)
    intent = f"pi_ok_{name.replace(' ', '_')}"
    stack.seed(order_id="o", payment_intent_id=intent)
    stack.send(
        json.dumps(
            {
                "job_type": "capture-payment",
                "idempotency_key": "k",
                "payload": {"order_id": "o", "payment_intent_id": intent},
            }
        )
    )
    monkeypatch.setenv("AWS_ENDPOINT_URL", burst.url)
    runtime, sqs = connect(payments.WORKER, stack.settings), client("sqs")
    monkeypatch.undo()
    burst.ask("DELETE", "fired")
    burst.ask("POST", "rules", [rule])
    try:
        timeout = runtime.worker.function_timeout + timedelta(seconds=20)  # moto and the proxy are slow
        consumer = Consumer(runtime.worker, runtime)
        mapping = EventSourceMapping(sqs, stack.settings.queues["payments"], consumer.handle, lambda: Context(timeout))
        run_a_batch(mapping)
        assert len(burst.fired()) >= least, "the fault did not fire"
    finally:
        burst.ask("POST", "rules", [])
    assert not [error for error in mapping.errors if isinstance(error, EventError)]
    assert "pipeline_failed" not in caplog.text
    stack.run(patience=timedelta(seconds=90))
    assert stack.order("o")["status"] == "paid"
    assert stack.order("o")["version"] == "2"
    assert len(provider.ledger.charges_of(intent)) == 1
    assert stack.dead_letters() == []


def test_a_visibility_that_cannot_be_changed_loses_nothing(
    burst: Burst,
    valkey: Valkey,
    provider: Provider,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    stack = new_stack(valkey, provider, visibility=3)
    stack.seed(order_id="o", payment_intent_id="pi_503x2_hidden")
    payload = {"order_id": "o", "payment_intent_id": "pi_503x2_hidden"}
    stack.send(json.dumps({"job_type": "capture-payment", "idempotency_key": "k", "payload": payload}))
    monkeypatch.setenv("AWS_ENDPOINT_URL", burst.url)
    runtime = connect(payments.WORKER, stack.settings)
    monkeypatch.undo()
    burst.ask("DELETE", "fired")
    burst.ask(
        "POST", "rules", [{"service": "sqs", "operation": "ChangeMessageVisibility", "error": {"code": "OverLimit"}}]
    )
    try:
        consumer = Consumer(runtime.worker, runtime)
        timeout = runtime.worker.function_timeout
        mapping = EventSourceMapping(
            stack.sqs, stack.settings.queues["payments"], consumer.handle, lambda: Context(timeout)
        )
        run_a_batch(mapping)
        assert burst.fired(), "the fault did not fire"
    finally:
        burst.ask("POST", "rules", [])
    said = caplog.text
    assert "visibility_not_changed" in said
    assert "pipeline_failed" not in said
    stack.run(patience=timedelta(seconds=90))
    assert stack.order("o")["status"] == "paid"
    assert len(provider.ledger.charges_of("pi_503x2_hidden")) == 1


def test_bat_16_a_job_whose_message_can_no_longer_be_hidden_stops_and_another_completes_it_once(
    burst: Burst, valkey: Valkey, provider: Provider, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stack = new_stack(valkey, provider, visibility=4, worker=CRASHING)
    stack.send(json.dumps({"job_type": "brew", "idempotency_key": "k", "payload": {"pot": "p"}}))
    monkeypatch.setenv("AWS_ENDPOINT_URL", burst.url)
    runtime = connect(CRASHING, stack.settings)
    monkeypatch.undo()
    burst.ask("DELETE", "fired")
    rule = {"service": "sqs", "operation": "ChangeMessageVisibility", "error": {"code": "InvalidParameterValue"}}
    burst.ask("POST", "rules", [rule])
    try:
        consumer = Consumer(runtime.worker, runtime)
        timeout = runtime.worker.function_timeout
        url = stack.settings.queues["payments"]
        mapping = EventSourceMapping(stack.sqs, url, consumer.handle, lambda: Context(timeout), 3)
        run_a_batch(mapping)
        assert burst.fired(), "the fault did not fire"
    finally:
        burst.ask("POST", "rules", [])
    assert "heartbeat_stopped" in caplog.text
    assert stack.database.items.read(BREWS, ("p",)) is None  # it stopped
    stack.run(patience=timedelta(seconds=90))
    brewed = stack.database.items.read(BREWS, ("p",))
    assert brewed is not None
    assert (brewed.attributes["times"], brewed.version) == (1, 1)


def test_i10_a_relay_whose_queue_takes_nothing_keeps_its_messages(
    burst: Burst, valkey: Valkey, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = new_stack(valkey, provider)
    stack.seed(order_id="o", payment_intent_id="pi_ok_relayed")
    payload = {"order_id": "o", "payment_intent_id": "pi_ok_relayed"}
    text = json.dumps({"job_type": "capture-payment", "idempotency_key": "k", "payload": payload})
    stack.runtime.settlement.outbox.post(Posting("p1", "payments", text, timedelta(0), None), stack.runtime.clock.now())
    monkeypatch.setenv("AWS_ENDPOINT_URL", burst.url)
    relay = outbox_relay.connect(stack.settings)
    monkeypatch.undo()
    burst.ask("DELETE", "fired")
    failure = {"error": {"code": "ServiceUnavailable", "status": 503}}
    burst.ask("POST", "rules", [{"service": "sqs", "operation": "SendMessageBatch", **failure}])
    (item,) = stack.database.client.scan(TableName=stack.settings.outbox_table, ConsistentRead=True)["Items"]
    records = [{"eventSource": "aws:dynamodb", "eventName": "INSERT", "dynamodb": {"NewImage": item}}]
    try:
        with pytest.raises(Unavailable):  # the stream delivers them again
            relay.relay(outbox_relay.read_stream({"Records": records}, relay.clock.now()))
        assert burst.fired(), "the fault did not fire"
    finally:
        burst.ask("POST", "rules", [])
    (kept,) = stack.database.client.scan(TableName=stack.settings.outbox_table, ConsistentRead=True)["Items"]
    assert kept == item
    stack.run()
    assert stack.order("o")["status"] == "paid"
