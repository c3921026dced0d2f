"""The payment provider stand-in over real HTTP: what it promises, and how it misbehaves."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest

from local.outside.payment_provider import Provider
from tests.serving import serving

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def provider() -> Iterator[Provider]:
    with serving(Provider(0, may_kill=True)) as server:
        yield server


def order(intent: str, amount: str = "30.40") -> dict[str, str]:
    return {"amount": amount, "currency": "EUR", "payment_intent_id": intent, "order_id": "order-1"}


def charge(
    provider: Provider, body: object, key: str | None = "key-1", timeout: float = 5
) -> tuple[int, dict[str, Any], dict[str, str]]:
    headers = {"Content-Type": "application/json", **({"Idempotency-Key": key} if key else {})}
    return send(provider, "/v1/charges", body, headers, timeout)


def get(provider: Provider, path: str) -> dict[str, Any]:
    return send(provider, path, None, {}, 5)[1]


def send(
    provider: Provider, path: str, body: object, headers: dict[str, str], timeout: float
) -> tuple[int, dict[str, Any], dict[str, str]]:
    data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{provider.server_port}{path}", data=data, headers=headers)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=timeout) as answer:
            return answer.status, json.loads(answer.read()), dict(answer.headers)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read()), dict(error.headers)


def test_a_charge_is_answered_with_what_was_asked(provider: Provider) -> None:
    status, body, _ = charge(provider, order("pi_ok_1"))

    assert status == 201
    assert body == {
        "charge_id": "ch_000001",
        "payment_intent_id": "pi_ok_1",
        "amount": "30.40",
        "currency": "EUR",
        "status": "captured",
    }
    assert get(provider, "/v1/charges?payment_intent_id=pi_ok_1") == {"charges": [body]}


def test_the_same_key_gives_the_same_charge(provider: Provider) -> None:
    _, first, _ = charge(provider, order("pi_ok_1"))
    status, second, _ = charge(provider, order("pi_ok_1"))

    assert (status, second) == (200, first)
    assert get(provider, "/ledger")["charges_by_intent"] == {"pi_ok_1": 1}


def test_the_same_key_with_another_request_is_refused(provider: Provider) -> None:
    charge(provider, order("pi_ok_1"))

    assert charge(provider, order("pi_ok_1", amount="99.00"))[:2] == (422, {"code": "idempotency_key_reused"})


def test_two_keys_for_one_intent_are_two_charges(provider: Provider) -> None:
    charge(provider, order("pi_ok_1"), key="a")
    charge(provider, order("pi_ok_1"), key="b")

    assert get(provider, "/ledger")["charges_by_intent"] == {"pi_ok_1": 2}


def test_racing_requests_with_one_key_charge_once(provider: Provider) -> None:
    answers: list[str] = []
    threads = [
        threading.Thread(target=lambda: answers.append(charge(provider, order("pi_slow_1"))[1]["charge_id"]))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert answers == ["ch_000001"] * 8


def test_two_refusals_then_a_charge(provider: Provider) -> None:
    statuses = [charge(provider, order("pi_503x2_1"))[0] for _ in range(4)]

    assert statuses == [503, 503, 201, 200]
    assert get(provider, "/ledger")["provoked"] == ["pi_503x2_1"]


def test_rate_limiting_names_the_wait(provider: Provider) -> None:
    status, _, headers = charge(provider, order("pi_429_1"))

    assert (status, headers["Retry-After"]) == (429, "3")
    assert charge(provider, order("pi_429_1"))[0] == 201


def test_the_ledger_tells_the_shortest_time_between_two_requests(provider: Provider) -> None:
    for pause in (0.3, 0.1, 0):
        charge(provider, order("pi_ok_1"))
        time.sleep(pause)
    charge(provider, order("pi_ok_2"))

    (waited,) = get(provider, "/ledger")["shortest_waits"].items()
    assert waited[0] == "pi_ok_1"
    assert 0.1 <= waited[1] < 0.3


def test_a_lost_answer_has_charged_all_the_same(provider: Provider) -> None:
    with pytest.raises(TimeoutError):
        charge(provider, order("pi_lost_1"), timeout=0.3)

    assert get(provider, "/ledger")["charges_by_intent"] == {"pi_lost_1": 1}
    assert charge(provider, order("pi_lost_1"))[0] == 200


def test_a_declined_card_is_never_charged(provider: Provider) -> None:
    assert [charge(provider, order("pi_decline_1"))[:2] for _ in range(2)] == [(402, {"code": "card_declined"})] * 2
    assert get(provider, "/v1/charges?payment_intent_id=pi_decline_1") == {"charges": []}


CLIENT = """
import json, sys, urllib.request
order = {"amount": "1.00", "currency": "EUR", "payment_intent_id": "pi_kill_1", "order_id": "order-1"}
body = json.dumps(order).encode()
request = urllib.request.Request(sys.argv[1], data=body, headers={"Idempotency-Key": "key-1"})
print(urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=20).status)
"""


def test_the_client_is_killed_once_after_its_charge(provider: Provider) -> None:
    command = [sys.executable, "-c", CLIENT, f"http://127.0.0.1:{provider.server_port}/v1/charges"]
    runs = [
        subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)  # noqa: S603 - the client above
        for _ in range(2)
    ]

    assert [run.returncode for run in runs] == [-9, 0]
    assert runs[1].stdout == "200\n"
    ledger = get(provider, "/ledger")
    assert ledger["charges_by_intent"] == {"pi_kill_1": 1}
    assert len(ledger["killed"]) == 1


def test_the_provider_spares_itself(provider: Provider) -> None:
    with pytest.raises(TimeoutError):  # this test is in the provider's own process
        charge(provider, order("pi_kill_1"), timeout=0.5)

    assert provider.killed == []


@pytest.mark.parametrize(
    ("body", "key", "code"),
    [
        (order("pi_ok_1"), None, "idempotency_key_missing"),
        (b"{", "key-1", "invalid_request"),
        ([], "key-1", "invalid_request"),
        ({**order("pi_ok_1"), "amount": 30.4}, "key-1", "invalid_request"),
        ({**order("pi_ok_1"), "more": "1"}, "key-1", "invalid_request"),
        ({"amount": "1"}, "key-1", "invalid_request"),
    ],
)
def test_a_request_that_is_none_is_refused(provider: Provider, body: object, key: str | None, code: str) -> None:
    status, answer, _ = charge(provider, body, key)

    assert (status, answer["code"]) == (400, code)
