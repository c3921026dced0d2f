"""The notification service's stand-in over real HTTP: one notice for each key, and how it misbehaves."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest

from local.outside.notification_service import KINDS, NotificationService
from tests.serving import serving

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def service() -> Iterator[NotificationService]:
    with serving(NotificationService(0, quiet=True)) as server:
        yield server


def ask(
    service: NotificationService,
    invoice_id: str = "i",
    *,
    key: str | None = "k",
    path: str = "/v1/notices",
    timeout: float = 5,
    **changes: Any,
) -> tuple[int, dict[str, Any]]:
    body = {"user_id": "ann", "invoice_id": invoice_id, "version": 2, "gross": "1.00", "currency": "EUR", **changes}
    headers = {} if key is None else {"Idempotency-Key": key}
    url = f"http://127.0.0.1:{service.server_port}{path}"
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=timeout) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


def ledger(service: NotificationService) -> Any:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"http://127.0.0.1:{service.server_port}/ledger", timeout=5) as answer:
        return json.loads(answer.read())


def test_one_key_sends_one_notice(service: NotificationService) -> None:
    assert ask(service) == (201, {"notice_id": "notice-1"})
    assert ask(service) == (200, {"notice_id": "notice-1"})
    assert ask(service, key="other") == (201, {"notice_id": "notice-2"})
    assert [each["key"] for each in ledger(service)["notices"]] == ["k", "other"]
    assert ledger(service)["requests_by_invoice"] == {"i": 3}


def test_one_key_is_for_one_notice(service: NotificationService) -> None:
    ask(service)
    assert ask(service, gross="2.00")[0] == 422


@pytest.mark.parametrize(
    "wrong", [{"key": None}, {"key": ""}, {"version": "2"}, {"version": True}, {"gross": 1}, {"more": 1}]
)
def test_what_is_no_notice_is_refused(service: NotificationService, wrong: dict[str, Any]) -> None:
    assert ask(service, **wrong)[0] == 400
    assert ledger(service)["notices"] == []


def test_there_is_nothing_at_another_path(service: NotificationService) -> None:
    assert ask(service, path="/v1/other")[0] == 404


def test_requests_are_refused_as_the_name_says_and_then_taken(service: NotificationService) -> None:
    statuses = {
        name: [ask(service, f"{name}1", key=name)[0] for _ in range(3)]
        for name in KINDS
        if name not in {"lost-", "slow-"}
    }
    assert statuses == {
        "503x2-": [503, 503, 201],
        "500-": [500, 201, 200],
        "429-": [429, 201, 200],
        "busy-": [409, 201, 200],
        "absent-": [404] * 3,
        "forbidden-": [403] * 3,
    }


def test_a_lost_answer_is_of_a_notice_that_was_sent(service: NotificationService) -> None:
    with pytest.raises(TimeoutError):
        ask(service, "lost-1", timeout=0.3)
    assert ask(service, "lost-1") == (200, {"notice_id": "notice-1"})


def test_a_slow_answer_comes(service: NotificationService) -> None:
    began = time.monotonic()
    assert ask(service, "slow-1")[0] == 201
    assert time.monotonic() - began >= 0.3
