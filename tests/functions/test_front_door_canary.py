"""What clients send stands in no log and no metric (I48): canaries in everything that a request has, and in what errors quote."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError
from pydantic import TypeAdapter, ValidationError

from functions import front_door
from shared.backends.dynamodb.acceptances import DynamoDBAcceptances
from shared.backends.dynamodb.job_records import DynamoDBJobRecords
from shared.backends.dynamodb.owned_jobs import DynamoDBOwnedJobs
from shared.backends.powertools import PowertoolsTelemetry
from shared.claim import Granted
from shared.clock import SystemClock
from shared.commit import Commit
from shared.intake.request import BODY_BYTES
from shared.job_record import Status
from tests.conformance.accepting import asked, claim_of
from tests.door import LOOK, Client, payload

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.stack import Stack

fresh = itertools.count()
CANARY = "c4n4ry"
BREAKS = f'{CANARY}\r\n{{"level":"ERROR"}}\x1b[31m'
HEADERS = {
    "Idempotency-Key": f"key-{CANARY}",
    "authorization": f"Bearer {CANARY}",
    "cookie": CANARY,
    "user-agent": BREAKS,
    "x-forwarded-for": CANARY,
    f"x-{CANARY}": CANARY,
}


def client(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> Client:
    """A front door that speaks to the stdout of this test: a logger keeps that which was there when its name was first used."""
    name = f"front-door-{next(fresh)}"
    monkeypatch.setattr(front_door, "PowertoolsTelemetry", lambda _: PowertoolsTelemetry(name))
    return Client(front_door.connect(stack.settings), stack, stack.own)


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """All that the front door has said; every line is JSON."""
    captured = capsys.readouterr()
    assert captured.err == ""
    found = captured.out.splitlines()
    assert all(isinstance(json.loads(line), dict) for line in found)
    return found


def test_i48_nothing_of_a_request_or_its_result_is_logged(
    stack: Stack, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    http = client(stack, monkeypatch)
    user = f"user-{CANARY}"
    post: dict[str, Any] = {"user": user, "headers": HEADERS}
    status, body, _ = http.post(payload(CANARY), **post)
    assert status == 202
    assert http.post(payload(f"other-{CANARY}"), **post)[0] == 422
    assert http.post({"order_id": [CANARY], CANARY: BREAKS}, **post)[0] == 422
    assert http.post(f"{{{CANARY}", **post)[0] == 400
    assert http.post(CANARY * (BODY_BYTES // len(CANARY) + 1), **post)[0] == 413
    assert http.post(payload("o"), job_type=CANARY, **post)[0] == 404
    assert http.post(payload("o"), user=user, headers={"Idempotency-Key": BREAKS})[0] == 400
    assert http.request("GET", f"/operations/{CANARY}", user=user, headers=HEADERS)[0] == 404
    assert http.request("GET", f"/{BREAKS}", user=user, headers=HEADERS)[0] == 404
    assert http.list(f"{CANARY}={CANARY}", user=user)[0] == 400
    assert http.list(f"next={CANARY}", user=user)[0] == 400
    identifier = body["operation_id"]
    now = SystemClock().now()
    records = http.stack.database.records(SystemClock())
    view = records.view(identifier.removeprefix("op_"))
    claim = claim_of(
        asked(f"key-{CANARY}", record=view.record, job_type="capture-payment", fingerprint=view.fingerprint)
    )
    granted = records.claim(claim, now)
    assert isinstance(granted, Granted)
    records.commit(granted.hold, Commit(Status.FAILED, json.dumps({"code": "no", "detail": CANARY})), now)
    seen = http.get(identifier, user=user)
    assert seen[1]["error"]["detail"] == CANARY
    assert http.list(user=user)[0] == 200
    assert http.delete(identifier, user=user)[0] == 409
    said = lines(capsys)
    assert len(said) >= 10
    assert [line for line in said if CANARY in line] == []


def validation() -> None:
    TypeAdapter(int).validate_python(CANARY)


def of_boto() -> None:
    raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": f"item {CANARY}"}}, "GetItem")


def of_ours() -> None:
    message = f"{CANARY} was there"
    raise RuntimeError(message)


@pytest.mark.parametrize("fails", [validation, of_boto, of_ours])
def test_i48_an_error_that_quotes_what_was_sent_is_told_by_its_class(
    stack: Stack, fails: Callable[[], None], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    http = client(stack, monkeypatch)

    def broken(*_: object) -> None:
        fails()

    for store, name in ((DynamoDBAcceptances, "accept"), (DynamoDBJobRecords, "view"), (DynamoDBOwnedJobs, "page")):
        monkeypatch.setattr(store, name, broken)
    answers = [
        http.post(payload(CANARY), headers=HEADERS),
        http.get("op_" + "0" * 64),
        http.list(),
    ]
    said = lines(capsys)
    for status, body, _ in answers:
        assert (status, body["code"]) == (500, "broken")
        assert CANARY not in json.dumps(body)
    assert [line for line in said if CANARY in line] == []
    with pytest.raises((ValidationError, ClientError, RuntimeError)) as raised:
        fails()
    assert CANARY in str(raised.value)
    kinds = [json.loads(line).get("error") for line in said]
    assert kinds.count(type(raised.value).__name__) == len(answers)


def test_the_sample_of_an_identity_is_what_these_tests_change() -> None:
    assert set(LOOK["requestContext"]["authorizer"]["jwt"]["claims"]) == {"iss", "sub"}
