"""The cases OUT-01, OUT-08 and those of IDE that a client can bring about, over HTTP events."""

from __future__ import annotations

import json
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from functions import front_door
from shared.claim import Granted
from shared.commit import Commit
from shared.job_record import RETENTION, Status
from shared.settings import OwnerLimits
from tests.conformance.accepting import asked, claim_of
from tests.door import Client, payload
from tests.functions.house import House

if TYPE_CHECKING:
    from tests.door import Answer
    from tests.stack import Stack

PLENTY = OwnerLimits(requests_per_second=1000, burst=1000, unfinished=1000)


def outbox_of(stack: Stack, record: str) -> list[Any]:
    items = stack.database.client.scan(TableName=stack.settings.outbox_table, ConsistentRead=True)["Items"]
    return [item for item in items if record in item["body"]["S"]]


def record_of(answer: Answer) -> str:
    record: str = answer[1]["operation_id"].removeprefix("op_")
    return record


def test_out_01_fifty_requests_at_the_same_moment_are_one_operation_and_one_message(stack: Stack) -> None:
    http = Client(front_door.connect(stack.settings), stack, stack.own)
    together = threading.Barrier(50)

    def post(_: int) -> Answer:
        together.wait(60)
        return http.post(payload("case-1"), key="case-1")

    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(post, range(50)))
    assert Counter(status for status, _, _ in answers) == {202: 50}
    assert len({record_of(answer) for answer in answers}) == 1
    assert Counter(headers["Idempotent-Replayed"] for _, _, headers in answers) == {"false": 1, "true": 49}
    assert len(outbox_of(stack, record_of(answers[0]))) == 1


class Busy:
    """A front door whose transactions are cancelled for these reasons, one list after another, and then succeed."""

    def __init__(self, stack: Stack, monkeypatch: pytest.MonkeyPatch, *reasons: list[str]) -> None:
        self.tried = 0
        left = list(reasons)
        make: Any = vars(front_door)["client"]

        def failing(service: str) -> Any:
            made = make(service)
            transact = made.transact_write_items

            def cancelled(**request: Any) -> Any:
                self.tried += 1
                if not left:
                    return transact(**request)
                codes = [{"Code": code} for code in left.pop(0)]
                error: Any = {"Error": {"Code": "TransactionCanceledException"}, "CancellationReasons": codes}
                raise ClientError(error, "TransactWriteItems")

            made.transact_write_items = cancelled
            return made

        monkeypatch.setattr(front_door, "client", failing)
        self.http = Client(front_door.connect(stack.settings), stack, stack.own)


def test_out_08_a_conflict_is_tried_again_and_accepted(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    busy = Busy(stack, monkeypatch, *[["None", "TransactionConflict"]] * 2)
    answer = busy.http.post(payload("case-2"), key="case-2")
    assert (answer[0], answer[2]["Idempotent-Replayed"], busy.tried) == (202, "false", 3)
    assert len(outbox_of(stack, record_of(answer))) == 1


def test_out_08_a_store_that_stays_busy_is_503_and_nothing_is_stored(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = Busy(stack, monkeypatch, *[["ThrottlingError", "None"]] * 20)
    status, body, headers = busy.http.post(payload("case-3"), key="case-3")
    assert (status, body["code"], headers["Retry-After"]) == (503, "try-again", "2")
    assert busy.tried == 4
    monkeypatch.undo()
    answer = Client(front_door.connect(stack.settings), own=stack.own).post(payload("case-3"), key="case-3")
    assert (answer[0], answer[2]["Idempotent-Replayed"]) == (202, "false")  # nothing was there


def test_out_08_what_dynamodb_can_never_take_is_a_fault_of_ours_and_not_tried_again(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = Busy(stack, monkeypatch, ["ValidationError", "None"])
    assert busy.http.post(payload("case-4"), key="case-4")[1]["code"] == "broken"
    assert busy.tried == 1


@pytest.fixture
def house() -> House:
    return House(PLENTY)


@pytest.mark.parametrize("key", [None, "", "   "])
def test_ide_04_without_a_key_two_strangers_share_nothing_since_nothing_is_stored(
    house: House, key: str | None
) -> None:
    for order in ("a", "b"):
        assert house.http.post(payload(order), key=key)[0] == 400
    assert (house.database.records, house.database.outbox) == ({}, {})


def test_ide_06_a_request_that_comes_again_while_its_job_runs_is_told_so_and_sends_nothing(house: House) -> None:
    first = house.http.post(payload("o"), key="k")
    claimed(house, record_of(first))
    status, body, headers = house.http.post(payload("o"), key="k")
    assert (status, body["status"], headers["Idempotent-Replayed"]) == (202, "running", "true")
    assert len(house.database.outbox) == 1


BODIES = [
    '{"order_id":"o","payment_intent_id":"p\\u00e9"}',
    '{"payment_intent_id":"pé","order_id":"o"}',
    ' {\n "payment_intent_id" : "p\\u00E9" ,\t"order_id":"o" }\r\n',
    '{"order_id":"\\u006f","payment_intent_id":"pé"}',
]


def test_ide_11_one_payload_written_in_other_ways_is_one_operation(house: House) -> None:
    answers = [house.http.post(body, key="k") for body in BODIES]
    assert [answer[0] for answer in answers] == [202] * len(BODIES)
    assert len({record_of(answer) for answer in answers}) == len(house.database.outbox) == 1


def test_ide_11_another_unicode_form_is_another_payload(house: House) -> None:
    house.http.post({"order_id": "o", "payment_intent_id": "p\u00e9"}, key="k")
    status, body, _ = house.http.post({"order_id": "o", "payment_intent_id": "pe\u0301"}, key="k")
    assert (status, body["code"]) == (422, "idempotency-key-reused")


def test_ide_13_an_expired_operation_is_gone_and_its_key_begins_anew(house: House) -> None:
    first = house.http.post(payload("o"), key="k")
    granted = claimed(house, record_of(first))
    house.database.commit(granted.hold, Commit(Status.COMPLETED, '"old"'), house.clock.now())
    house.clock.pass_(RETENTION - timedelta(seconds=1))
    assert house.http.get(first[1]["operation_id"])[1]["result"] == "old"
    assert house.http.post(payload("o"), key="k")[2]["Idempotent-Replayed"] == "true"
    house.clock.pass_(timedelta(seconds=1))  # exactly then it has expired
    assert house.http.get(first[1]["operation_id"])[0] == 404
    assert house.http.list()[1] == {"operations": []}
    status, body, headers = house.http.post(payload("other"), key="k")
    assert (status, body["status"], headers["Idempotent-Replayed"]) == (202, "pending", "false")
    assert "old" not in json.dumps(house.http.get(body["operation_id"])[1])


def claimed(house: House, record: str) -> Granted:
    """An attempt that holds the job."""
    view = house.database.records[record]
    claim = claim_of(asked(view.names["idempotency_key"], record=record, job_type=view.names["job_type"]))
    now = house.clock.now()
    granted = house.database.claim(
        replace(claim, fingerprint=view.fingerprint, until=now + timedelta(seconds=30), accepted=True), now
    )
    assert isinstance(granted, Granted)
    return granted
