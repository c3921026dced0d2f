"""The front door over moto: one operation for each intent, its owner alone sees it, and every refusal says what to do."""

from __future__ import annotations

import base64
import copy
import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from functions import front_door, payments
from functions.http.answers import HEADERS
from functions.http.caller import owner_of
from functions.invoked import once
from shared.backends.dynamodb.acceptances import DynamoDBAcceptances
from shared.errors import StoreUnavailable
from shared.job_record import Status, record_id
from shared.wire.deposits import LARGEST_BYTES
from tests.door import ACCEPT, LOOK, Client, payload
from tests.world import Context

if TYPE_CHECKING:
    from tests.stack import Stack


@pytest.fixture
def http(stack: Stack) -> Client:
    return Client(front_door.connect(stack.settings), stack, stack.own)


def test_r3_1_a_request_is_accepted_at_once_and_its_operation_ends_with_the_result(http: Client) -> None:
    http.stack.seed(order_id="o1", payment_intent_id="pi_ok_o1")
    status, body, headers = http.post(payload("o1"))
    assert status == 202
    assert (body["status"], body["job_type"]) == ("pending", "capture-payment")
    assert headers["Location"] == f"/operations/{body['operation_id']}"
    assert (headers["Retry-After"], headers["Idempotent-Replayed"]) == ("2", "false")
    assert HEADERS.items() <= headers.items()
    http.stack.run()
    status, seen, headers = http.get(body["operation_id"])
    assert status == 200
    assert seen["status"] == "done"
    assert seen["result"]["order_id"] == "o1"
    assert set(seen) == {"operation_id", "job_type", "status", "result"}
    assert "Retry-After" not in headers
    assert http.stack.order("o1")["status"] == "paid"


def test_r3_2_the_same_request_again_gets_the_same_answer_marked_and_no_second_job(http: Client) -> None:
    http.stack.seed(order_id="o2", payment_intent_id="pi_ok_o2")
    first = http.post(payload("o2"), key="k2")
    http.stack.run()
    again = http.post(json.dumps(payload("o2"), indent=2), key="k2")
    assert again[0] == 202
    assert again[1]["operation_id"] == first[1]["operation_id"]
    assert (again[1]["status"], again[2]["Idempotent-Replayed"]) == ("done", "true")
    http.stack.run()
    assert len(http.stack.provider.ledger.charges_of("pi_ok_o2")) == 1


def test_out_01_fifty_requests_at_once_are_one_operation(http: Client) -> None:
    http.stack.seed(order_id="o3", payment_intent_id="pi_ok_o3")
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: http.post(payload("o3"), key="k3"), range(50)))
    assert {status for status, _, _ in answers} == {202}
    assert len({body["operation_id"] for _, body, _ in answers}) == 1
    assert [headers["Idempotent-Replayed"] for _, _, headers in answers].count("false") == 1
    http.stack.run()
    assert len(http.stack.provider.ledger.charges_of("pi_ok_o3")) == 1


def test_i3_a_key_with_another_payload_is_422_and_changes_nothing(http: Client) -> None:
    http.post(payload("o4"), key="k4")
    status, body, headers = http.post(payload("o5"), key="k4")
    assert (status, body["code"]) == (422, "idempotency-key-reused")
    assert headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("key", [None, "", "   ", "k" * 256])
def test_ide_04_without_a_usable_key_nothing_is_accepted(http: Client, key: str | None) -> None:
    status, body, _ = http.post(payload("o6"), key=key)
    assert status == 400
    assert body["code"] in {"missing-idempotency-key", "invalid-idempotency-key"}


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ("", 400, "malformed-json"),
        ("no JSON", 400, "malformed-json"),
        ("[1]", 400, "malformed-json"),
        ('{"order_id":"\\u0000","order_id":"b"}', 400, "malformed-json"),
        ("x" * (LARGEST_BYTES + 1), 413, "payload-too-large"),
    ],
)
def test_i4_what_cannot_be_read_is_refused(http: Client, body: str, status: int, code: str) -> None:
    seen, problem, _ = http.post(body, key="k7")
    assert (seen, problem["code"], problem["status"]) == (status, code, status)


def test_a_payload_that_breaks_the_schema_is_told_field_by_field_and_without_its_values(http: Client) -> None:
    status, body, _ = http.post({"order_id": 7, "more": "SECRET"}, key="k8")
    assert (status, body["code"]) == (422, "invalid-payload")
    assert {error["field"]: error["rule"] for error in body["errors"]} == {
        "order_id": "string_type",
        "payment_intent_id": "missing",
        "more": "extra_forbidden",
    }
    assert "SECRET" not in json.dumps(body)


@pytest.mark.parametrize("job_type", ["no-such-job", "reconcile-payment", "Capture-Payment", "capture-payment%2F"])
def test_only_job_types_that_are_open_to_clients_are_there(http: Client, job_type: str) -> None:
    assert http.post(payload("o9"), job_type=job_type)[0] == 404


def test_a_body_in_base64_is_read_and_bytes_that_are_no_text_are_refused(http: Client) -> None:
    text = base64.b64encode(json.dumps(payload("o10")).encode()).decode()
    assert http.post(text, key="k10", isBase64Encoded=True)[0] == 202
    assert http.post(base64.b64encode(b"\xff\xfe").decode(), key="k11", isBase64Encoded=True)[0] == 400


def test_i6_a_foreign_operation_is_exactly_as_absent_as_one_that_never_was(http: Client) -> None:
    _, mine, _ = http.post(payload("o12"), key="k12")
    foreign = http.get(mine["operation_id"], user="user-2")
    absent = http.get("op_" + "0" * 64, user="user-2")
    malformed = http.get("op_zz", user="user-2")
    assert foreign == absent == malformed
    assert foreign[0] == 404
    own = http.post(payload("o12-2"), key="k12", user="user-2")
    assert own[0] == 202
    assert own[1]["operation_id"] != mine["operation_id"]
    assert own[2]["Idempotent-Replayed"] == "false"


def test_without_a_verified_identity_nothing_is_answered(http: Client) -> None:
    assert http.post(payload("o13"), user=None)[0] == 401
    assert http.get("op_" + "0" * 64, user=None)[0] == 401
    for blank in ("", "  "):
        assert http.get("op_" + "0" * 64, user=blank)[0] == 401


def test_two_issuers_may_have_the_same_subject() -> None:
    event = copy.deepcopy(LOOK)
    claims = event["requestContext"]["authorizer"]["jwt"]["claims"]
    one = owner_of(event)
    claims["iss"] = "https://other.example.com"
    assert owner_of(event) != one
    event["requestContext"]["authorizer"] = {"iam": {"userArn": "arn:aws:iam::000000000000:user/a"}}
    assert owner_of(event) == "iam:arn:aws:iam::000000000000:user/a"


def test_out_08_a_store_that_is_busy_is_503_with_the_time_to_come_again(
    http: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*_: Any) -> None:
        message = "busy"
        raise StoreUnavailable(message)

    monkeypatch.setattr(DynamoDBAcceptances, "accept", busy)
    status, body, headers = http.post(payload("o14"))
    assert (status, body["code"], headers["Retry-After"]) == (503, "try-again", "2")


def test_another_path_is_a_problem_too(http: Client) -> None:
    event = copy.deepcopy(LOOK)
    event["rawPath"] = event["requestContext"]["http"]["path"] = "/elsewhere"
    status, body, headers = http.ask(event)
    assert (status, body["code"]) == (404, "not-found")
    assert headers["Content-Type"] == "application/problem+json"


def test_r2_3_an_accepted_capture_whose_answer_was_lost_is_settled_under_its_own_operation(http: Client) -> None:
    http.stack.seed(order_id="o15", payment_intent_id="pi_lost_o15")
    lost = {"order_id": "o15", "payment_intent_id": "pi_lost_o15"}
    _, body, _ = http.post(lost, key="k15")
    http.stack.run()
    assert http.get(body["operation_id"])[1]["status"] == "done"
    owner = owner_of(ACCEPT)
    assert owner is not None
    view = http.stack.runtime.execution.records.view(record_id(owner, payments.capture_payment.name, "k15"))
    assert view is not None
    assert view.status is Status.COMPLETED
    assert len(http.stack.provider.ledger.charges_of("pi_lost_o15")) == 1


def test_the_handler_answers_an_event_as_api_gateway_sends_it(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in stack.settings.to_environ().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(front_door, "door_here", once(front_door.connect))
    stack.own("order-17", "user-1")
    answer = front_door.handler(copy.deepcopy(ACCEPT), Context())
    assert answer["statusCode"] == 202


def test_a_pending_operation_is_cancelled_and_its_message_does_nothing(http: Client) -> None:
    http.stack.seed(order_id="o20", payment_intent_id="pi_ok_o20")
    _, body, _ = http.post(payload("o20"), key="k20")
    status, seen, _ = http.delete(body["operation_id"])
    assert (status, seen["status"]) == (200, "cancelled")
    assert http.delete(body["operation_id"])[0] == 200
    http.stack.run()
    assert http.stack.order("o20")["status"] == "pending"
    assert http.stack.provider.ledger.charges_of("pi_ok_o20") == []
    assert http.get(body["operation_id"])[1]["status"] == "cancelled"


def test_an_operation_that_has_ended_or_is_anothers_is_not_cancelled(http: Client) -> None:
    http.stack.seed(order_id="o21", payment_intent_id="pi_ok_o21")
    _, body, _ = http.post(payload("o21"), key="k21")
    http.stack.run()
    status, problem, _ = http.delete(body["operation_id"])
    assert (status, problem["code"]) == (409, "ended")
    assert http.delete(body["operation_id"], user="user-2")[0] == 404
    assert http.delete(body["operation_id"], user=None)[0] == 401
    assert http.delete("op_" + "0" * 64)[0] == 404
