"""What DynamoDB and SQS do on a bad day, on the wire: throttling, lost replies, hanging, resets. Each fault is proved to have fired."""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from functions import payments
from local.child import Program
from local.event_source_mapping import EventSourceMapping
from local.ports import free_port, listens
from local.processes import Children
from shared.consumer import Consumer
from shared.runtime import connect
from tests.stack import new_stack
from tests.world import Context

if TYPE_CHECKING:
    from collections.abc import Iterator

    from local.provider import Provider
    from local.valkey import Valkey


class Burst:
    """The proxy between the functions and moto, with its rules."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}/_microburst/{path}", data, headers, method=method)  # noqa: S310 - ours
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 - ours
            return json.loads(answer.read() or b"null")

    def fired(self) -> list[Any]:
        answer = self.ask("GET", "fired")
        events: list[Any] = answer if isinstance(answer, list) else answer.get("fired", answer.get("events", []))
        return events


@pytest.fixture(scope="module")
def burst(aws_endpoint: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Burst]:
    port = free_port()
    log = tmp_path_factory.mktemp("burst") / "log"
    command = (sys.executable, "-m", "microburst", "--upstream", aws_endpoint, "--port", str(port), "--no-resign")
    with Children() as children:
        child = children.start(Program("microburst", command, dict(os.environ), log))
        child.wait_until(lambda: listens(port), timedelta(seconds=30))
        yield Burst(port)


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
    "DynamoDB is gone": ({"service": "dynamodb", "reset": True}, 3),
}


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
    runtime = connect(payments.WORKER, stack.settings)
    monkeypatch.undo()
    burst.ask("DELETE", "fired")
    burst.ask("POST", "rules", [rule])
    try:
        timeout = runtime.worker.function_timeout + timedelta(seconds=20)  # moto and the proxy are slow
        consumer = Consumer(runtime.worker, runtime)
        mapping = EventSourceMapping(
            stack.sqs, stack.settings.queues["payments"], consumer.handle, lambda: Context(timeout)
        )
        assert mapping.poll() == 1
        assert len(burst.fired()) >= least, "the fault did not fire"
    finally:
        burst.ask("POST", "rules", [])
    assert mapping.errors == []
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
        assert mapping.poll() == 1
        assert burst.fired(), "the fault did not fire"
    finally:
        burst.ask("POST", "rules", [])
    said = caplog.text
    assert "visibility_not_changed" in said
    assert "pipeline_failed" not in said
    stack.run(patience=timedelta(seconds=90))
    assert stack.order("o")["status"] == "paid"
    assert len(provider.ledger.charges_of("pi_503x2_hidden")) == 1
