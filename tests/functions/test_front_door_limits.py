"""What one owner may ask: over its rate or its quota it is told to wait before anything is written (API4, I44)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from functions import front_door
from functions.http.answers import refusal
from functions.http.problem import too_many_requests
from shared.backends.memory.rates import MemoryRates
from shared.errors import CacheUnavailable
from shared.settings import OwnerLimits
from tests.door import Client, payload
from tests.functions.house import LIMITS, House
from tests.redis_calls import exchanges
from tests.world import FakeClock

if TYPE_CHECKING:
    from shared.rate import Rate
    from tests.stack import Stack


def test_api4_over_its_rate_an_owner_is_told_when_to_come_again_on_every_route() -> None:
    house = House()
    http = house.http
    for _ in range(4):
        assert http.list()[0] == 200
    asked = [http.list(), http.post(payload("o1")), http.get("op_x"), http.delete("op_x"), http.request("GET", "/no")]
    for status, body, headers in asked:
        assert (status, body["code"], headers["Retry-After"]) == (429, "too-many-requests", "1")
    assert house.counted("rate_exceeded") == 5
    assert (house.database.records, house.database.outbox) == ({}, {})
    assert http.list(user="user-2")[0] == 200
    house.clock.pass_(timedelta(seconds=1))
    assert [http.list()[0] for _ in range(3)] == [200, 200, 429]


def test_the_wait_that_is_told_is_never_too_short() -> None:
    house = House(replace(LIMITS, burst=1))
    house.http.list()
    house.clock.pass_(timedelta(milliseconds=100))
    assert house.http.list()[2]["Retry-After"] == "1"  # 0.4 s, in whole seconds
    for seconds, told in ((0.001, "1"), (1, "1"), (1.2, "2"), (61.5, "62")):
        assert refusal(too_many_requests(timedelta(seconds=seconds))).headers["Retry-After"] == told


def test_i44_over_its_quota_an_owner_is_told_to_wait_and_nothing_is_written() -> None:
    house = House(replace(LIMITS, burst=100))
    http = house.http
    accepted = [http.post(payload(f"o{n}"), key=f"k{n}") for n in range(2)]
    assert [status for status, _, _ in accepted] == [202, 202]
    status, body, headers = http.post(payload("o3"), key="k3")
    assert (status, body["code"], headers["Retry-After"]) == (429, "too-many-unfinished", "10")
    assert len(house.database.records) == len(house.database.outbox) == 2
    assert http.post(payload("o0"), key="k0")[2]["Idempotent-Replayed"] == "true"
    assert http.post(payload("o0"), key="k1")[0] == 422
    assert http.post({"order_id": 1}, key="k3")[0] == 422  # what can never be accepted is told first
    assert http.post(payload("o4"), key="k4", user="user-2")[0] == 202
    assert http.delete(accepted[0][1]["operation_id"])[0] == 200
    assert http.post(payload("o3"), key="k3")[0] == 202


class Gone:
    """Rates that nobody can tell."""

    def take(self, name: str, rate: Rate) -> timedelta:
        message = "Redis did not do it (ConnectionError)."
        raise CacheUnavailable(message)


def test_redis_gone_lets_everybody_in_and_is_counted() -> None:
    house = House(rates=Gone())
    assert [house.http.list()[0] for _ in range(9)] == [200] * 9
    assert (house.counted("rate_unavailable"), house.counted("rate_exceeded")) == (9, 0)


class Noting(MemoryRates):
    """Rates that note the names."""

    def take(self, name: str, rate: Rate) -> timedelta:
        self.due.setdefault(name, 0.0)
        return MemoryRates.take(self, name, rate)


def test_i48_what_stands_in_redis_tells_nobody_who_an_owner_is() -> None:
    rates = Noting(FakeClock())
    house = House(rates=rates)
    house.http.list(user="CANARY@example.com")
    house.http.list(user=None)
    (name,) = rates.due  # of a request without an identity there is none
    assert "CANARY" not in name
    assert "example" not in name


@pytest.fixture
def http(stack: Stack) -> Client:
    settings = replace(stack.settings, owner_limits=OwnerLimits(1, 6, 1000))
    return Client(front_door.connect(settings), stack, stack.own)


def test_the_deployed_front_door_keeps_rates_in_the_cache_and_works_without_one(http: Client, stack: Stack) -> None:
    statuses = Counter(http.list(user="limited-1")[0] for _ in range(60))
    assert set(statuses) == {200, 429}
    assert statuses[200] >= 6
    settings = replace(stack.settings, owner_limits=OwnerLimits(1, 1, 1000), cache_host="")
    without = Client(front_door.connect(settings))
    assert {without.list(user="limited-1")[0] for _ in range(5)} == {200}


def test_an_accepted_request_costs_a_look_a_count_a_transaction_and_one_exchange_with_redis(
    http: Client, monkeypatch: pytest.MonkeyPatch
) -> None:

    calls: Counter[str] = Counter()
    sent: list[Any] = []
    http.post(payload("o9"), key="warm", user="counted-1")
    make: Any = vars(front_door)["client"]

    def counting(service: str) -> Any:
        made = make(service)
        made.meta.events.register("before-call.dynamodb", lambda model, **_: calls.update([model.name]))
        return made

    monkeypatch.setattr(front_door, "client", counting)
    counted = Client(front_door.connect(replace(http.stack.settings, owner_limits=OwnerLimits(100, 100, 1000))))
    counted.post(payload("o9"), key="warm", user="counted-1")
    calls.clear()
    with exchanges(sent.append):
        status, body, _ = counted.post(payload("o9"), key="k9", user="counted-1")
    assert status == 202
    assert calls == {"GetItem": 1, "Query": 1, "TransactWriteItems": 1}  # whose order it is, first
    assert len(sent) == 1
    calls.clear()
    counted.get(body["operation_id"], user="counted-1")
    assert calls == {"GetItem": 1}
    calls.clear()
    counted.list(user="counted-1")
    assert calls == {"Query": 1, "BatchGetItem": 1}
    calls.clear()
    counted.delete(body["operation_id"], user="counted-1")
    assert calls == {"UpdateItem": 1}
