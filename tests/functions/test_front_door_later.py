"""Over HTTP: jobs for later, and one correlation from the first request to the last log line."""

from __future__ import annotations

import itertools
import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from functions import front_door
from shared.backends.powertools import PowertoolsTelemetry
from shared.producer import group_of
from shared.wire.parsing import read_message
from tests.door import Client, payload

if TYPE_CHECKING:
    from tests.stack import Stack

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
fresh = itertools.count()


class Own(Client):
    """A client whose user is nobody else's."""

    def __init__(self, stack: Stack) -> None:
        super().__init__(front_door.connect(stack.settings), stack, stack.own)
        self.user = f"user-{next(fresh)}"

    def request(self, *asked: Any, **changes: Any) -> Any:
        return super().request(*asked, **{**changes, "user": self.user})


@pytest.fixture
def http(stack: Stack) -> Client:
    return Own(stack)


def test_i43_a_clients_job_takes_its_owners_turn_on_the_queue(http: Client) -> None:
    http.post(payload("turn"), key="turn")
    http.stack.relay_new()
    taken = http.stack.sqs.receive_message(
        QueueUrl=http.stack.settings.queues["payments"], AttributeNames=["All"], MaxNumberOfMessages=10
    )["Messages"]
    (message,) = [each for each in taken if read_message(each["Body"]).idempotency_key == "turn"]
    group, tenant = message["Attributes"]["MessageGroupId"], read_message(message["Body"]).tenant
    assert tenant is not None
    assert tenant.endswith(http.user)  # type: ignore[attr-defined]
    assert group == group_of(tenant)


def ahead(**time: float) -> datetime:
    return datetime.now(UTC).replace(microsecond=0) + timedelta(**time)


def test_r1_1_a_job_for_later_is_pending_until_then_and_can_be_cancelled(http: Client) -> None:
    http.stack.seed(order_id="later", payment_intent_id="pi_ok_later")
    run_at = ahead(days=3)
    status, body, _ = http.post(payload("later"), query=f"run_at={quote(run_at.isoformat())}")
    assert (status, body["status"]) == (202, "pending")
    assert datetime.fromisoformat(body["run_at"]) == run_at
    http.stack.relay_new()
    assert http.stack.sqs.receive_message(QueueUrl=http.stack.settings.queues["payments"]).get("Messages", []) == []
    assert http.get(body["operation_id"])[1] == body
    status, cancelled, _ = http.delete(body["operation_id"])
    assert (status, cancelled["status"]) == (200, "cancelled")
    assert "run_at" not in cancelled
    again = http.post(payload("later"), query=f"run_at={quote(run_at.isoformat())}")
    assert (again[0], again[1]["status"], again[2]["Idempotent-Replayed"]) == (202, "cancelled", "true")


def test_a_job_for_a_moment_that_is_past_runs_at_once(http: Client) -> None:
    http.stack.seed(order_id="past", payment_intent_id="pi_ok_past")
    _, body, _ = http.post(payload("past"), query=f"run_at={ahead(hours=-1).isoformat()}")  # the plus is not encoded
    http.stack.run()
    assert http.get(body["operation_id"])[1]["status"] == "done"


def test_another_moment_under_one_key_is_another_request(http: Client) -> None:
    run_at = quote(ahead(days=1).isoformat())
    assert http.post(payload("o"), query=f"run_at={run_at}")[0] == 202
    assert http.post(payload("o"), query=f"run_at={run_at}")[0] == 202
    for query in ("", f"run_at={quote(ahead(days=2).isoformat())}"):
        assert http.post(payload("o"), query=query)[1]["code"] == "idempotency-key-reused"


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("version=2", 422, "schema-unsupported"),
        ("version=0", 400, "invalid-query"),
        ("version=one", 400, "invalid-query"),
        ("version=9999999", 400, "invalid-query"),
        ("run_at=tomorrow", 400, "invalid-query"),
        ("run_at=2026-01-01T00:00:00", 400, "invalid-query"),
        ("run_at=", 400, "invalid-query"),
        ("run_at=2026-01-01T00:00:00Z&run_at=2026-01-01T00:00:00Z", 400, "invalid-query"),
        ("runat=2026-01-01T00:00:00Z", 400, "invalid-query"),
        ("run_at=9999-12-31T23:59:59Z", 422, "invalid-run-at"),
        ("run_at=0001-01-01T00:00:00%2B23:59", 422, "invalid-run-at"),
    ],
)
def test_a_moment_that_is_none_is_refused_and_nothing_is_written(
    http: Client, query: str, status: int, code: str
) -> None:
    answered = http.post(payload("o"), query=query)
    assert (answered[0], answered[1]["code"]) == (status, code)
    assert http.list()[1]["operations"] == []


def said(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return [line for line in lines if line.get("message") == "job"]


@pytest.mark.parametrize(
    "header",
    [
        {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"},
        {"X-Amzn-Trace-Id": f"Root=1-{TRACE[:8]}-{TRACE[8:]}"},
    ],
)
def test_r3_5_one_correlation_runs_from_the_request_to_the_last_log_line(
    stack: Stack, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], header: dict[str, str]
) -> None:
    names = itertools.count()

    def telemetry(service: str) -> PowertoolsTelemetry:  # a logger keeps the stdout of when its name was first used
        return PowertoolsTelemetry(f"{service}-{next(fresh)}-{next(names)}")

    monkeypatch.setattr(front_door, "PowertoolsTelemetry", telemetry)
    http = Own(stack)
    order = f"traced-{next(fresh)}"
    body = {"order_id": order, "payment_intent_id": f"pi_lost_{order}"}
    stack.seed(**body)  # its answer is lost: another job finds it out
    heard = telemetry("payments")
    made = stack.runtime
    for part in (made.execution, made.execution.reporting, made.execution.attempts, made.settlement, made):
        object.__setattr__(part, "telemetry", heard)
    _, operation, _ = http.post(body, headers={"Idempotency-Key": "k", **header})
    stack.run()
    assert http.get(operation["operation_id"])[1]["status"] == "done"
    lines = said(capsys)
    accepted, *jobs = lines
    # What another test's job has waited for may run here, too: by what it works on it is told apart.
    (mine,) = {tuple(line["resources"]) for line in jobs if line["operation_id"] == operation["operation_id"]}
    jobs = [line for line in jobs if tuple(line["resources"]) == mine]
    lines = [accepted, *jobs]
    assert (accepted["result"], accepted["operation_id"]) == ("accepted", operation["operation_id"])
    assert accepted["request_id"]
    assert {line["job_type"] for line in jobs} == {"capture-payment", "reconcile-payment"}
    assert {line["trace_id"] for line in lines} == {TRACE}
    captures = [line for line in jobs if line["job_type"] == "capture-payment"]
    assert {line["operation_id"] for line in captures} == {operation["operation_id"]}
    assert {line["record"] for line in captures} == {accepted["record"]}
    assert all("idempotency_key" not in line for line in lines)


def test_a_request_without_a_trace_begins_one(http: Client) -> None:
    http.post(payload("o"), key="own")
    items = http.stack.database.client.scan(TableName=http.stack.settings.outbox_table, ConsistentRead=True)["Items"]
    (message,) = [message for item in items if (message := read_message(item["body"]["S"])).idempotency_key == "own"]
    assert message.trace is not None
    assert len(message.trace.trace_id) == 32
