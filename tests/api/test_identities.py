"""Every route over HTTP with tokens that are none: all are answered alike, before the front door hears of them (API2)."""

from __future__ import annotations

import http.client
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from functions.http.routes import ROUTES
from local.outside.tokens import Issuer
from shared.clock import SystemClock
from tests.api.schemathesis_run import LOGIN, served
from tests.functions.house import House

if TYPE_CHECKING:
    from local.invoking.http_api import HttpApi

HOUR = timedelta(hours=1)
NOW = SystemClock().now()
Make = Callable[[Issuer], str]
TOKENS: dict[str, Make] = {
    "none": lambda _: "",
    "expired": lambda issuer: issuer.token("user-1", exp=NOW - HOUR),
    "not begun": lambda issuer: issuer.token("user-1", nbf=NOW + HOUR),
    "another issuer's": lambda issuer: issuer.token("user-1", iss="https://other.example.com"),
    "for another": lambda issuer: issuer.token("user-1", aud="another"),
    "another key's": lambda issuer: Issuer(issuer.url, issuer.audience, issuer.clock).token("user-1"),
    "cut": lambda issuer: issuer.token("user-1")[:-10],
}


def ask(api: HttpApi, method: str, path: str, token: str) -> tuple[int, bytes, dict[str, Any]]:
    connection = http.client.HTTPConnection(api.url.removeprefix("http://"), timeout=20)
    connection.request(method, path, headers={"Authorization": f"Bearer {token}", "Idempotency-Key": "k"})
    answer = connection.getresponse()
    headers = {name.lower(): value for name, value in answer.getheaders() if name.lower() != "date"}
    read = answer.status, answer.read(), headers
    connection.close()
    return read


def test_api2_a_bad_token_opens_no_route_and_learns_nothing() -> None:
    house = House()
    heard: list[object] = []

    def handle(event: dict[str, Any], context: Any) -> dict[str, Any]:
        heard.append(event)
        return house.door.handle(event, context)

    with served(handle) as api:
        own = house.http.post({"order_id": "o", "payment_intent_id": "p"}, user="user-1")[1]["operation_id"]
        answers = [
            ask(
                api,
                route.method,
                route.path.replace("{operation_id}", target).replace("{job_type}", target),
                make(api.issuer),
            )
            for route in ROUTES
            for target in (own, "op_" + "0" * 64, "capture-payment", "never-was")
            for make in TOKENS.values()
        ]
        assert heard == []
        assert all(answer == answers[0] for answer in answers)
        assert answers[0][0] == 401
        assert ask(api, "GET", "/operations", api.issuer.token("user-1"))[0] == 200
    assert len(heard) == 1
    assert LOGIN in str(heard)


@pytest.mark.parametrize("scheme", ["Bearer ", "bearer ", ""])
def test_the_word_before_a_token_may_be_left_out(scheme: str) -> None:
    house = House()
    with served(house.door.handle) as api:
        connection = http.client.HTTPConnection(api.url.removeprefix("http://"), timeout=20)
        connection.request("GET", "/operations", headers={"Authorization": scheme + api.issuer.token("user-1")})
        assert connection.getresponse().status == 200
        connection.close()
