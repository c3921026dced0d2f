"""Requests that rest on what a client has seen, that are not its own, or that come while intake is closed."""

from __future__ import annotations

import copy
import json
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from functions import front_door
from functions.http.reads import Reads
from functions.inventory import HEAD, INVENTORY
from functions.orders import ORDERS
from local.demo.situations import EVENTS
from shared.backends.memory.intake import MemoryIntakeStore
from shared.backends.memory.owned_jobs import MemoryOwnedJobs
from shared.clock import Surroundings
from shared.errors import StoreUnavailable
from shared.intake.shedding import FRESH, Closed
from shared.item import Stored
from shared.settings import OwnerLimits
from tests.functions.house import House
from tests.world import Context, Counter

if TYPE_CHECKING:
    from functions.front_door import FrontDoor

PLENTY = OwnerLimits(requests_per_second=1000, burst=1000, unfinished=1000)
ACCEPT = json.loads((EVENTS.parent / "front_door" / "accept.json").read_text(encoding="utf-8"))
Answer = tuple[int, Any, dict[str, str]]


class Door:
    """The front door before stores in memory; ann has an order at version 3, and an inventory at version 5."""

    def __init__(self, **options: Any) -> None:
        self.house = House(PLENTY, **options)
        self.clock, self.closures, self.telemetry = self.house.clock, self.house.closures, self.house.telemetry
        self.database = self.house.database
        self.order(3)
        self.database.items[INVENTORY.name, ("ann", HEAD)] = Stored({"user_id": "ann", "part": HEAD}, 5)

    def order(self, version: int) -> None:
        self.database.items[ORDERS.name, ("o",)] = Stored({"order_id": "o", "user_id": "ann"}, version)

    def capture(self, key: str = "k", *, order: str = "o", **headers: str) -> Answer:
        return self.post("capture-payment", {"order_id": order, "payment_intent_id": "pi"}, key, **headers)

    def sync(self, user: str, key: str = "s", **headers: str) -> Answer:
        return self.post("sync-inventory", {"user_id": user}, key, **headers)

    def post(self, job_type: str, payload: Any, key: str, user: str | None = "ann", **headers: str) -> Answer:
        event = copy.deepcopy(ACCEPT)
        event["rawPath"] = event["requestContext"]["http"]["path"] = f"/operations/{job_type}"
        event["headers"] = {"idempotency-key": key, **{name.replace("_", "-"): text for name, text in headers.items()}}
        event["body"] = json.dumps(payload)
        if user is None:
            event["requestContext"]["authorizer"] = {"iam": {"userArn": "arn:aws:iam::1:role/shop"}}
        else:
            event["requestContext"]["authorizer"]["jwt"]["claims"]["sub"] = user
        return self.ask(event)

    def get(self, operation: str) -> Answer:
        event = copy.deepcopy(ACCEPT)
        event["requestContext"]["http"].update(method="GET", path=f"/operations/{operation}")
        event["rawPath"] = f"/operations/{operation}"
        event["requestContext"]["authorizer"]["jwt"]["claims"]["sub"] = "ann"
        return self.ask(event)

    def ask(self, event: dict[str, Any]) -> Answer:
        answer = self.house.door.handle(event, Context())
        return answer["statusCode"], json.loads(answer["body"]), answer["headers"]

    @property
    def is_untouched(self) -> bool:
        return not self.database.records and not self.database.outbox


def replaced(house: House, reads: Reads) -> FrontDoor:
    """The house's front door, that reads items elsewhere."""
    return front_door.assemble(
        accepts=house.database,
        records=house.database,
        jobs=MemoryOwnedJobs(house.database),
        reads=reads,
        closures=house.closures,
        rates=None,
        limits=None,
        here=Surroundings(house.clock, Random(3), Counter()),  # noqa: S311 - repeatable
        telemetry=house.telemetry,
    )


@pytest.mark.parametrize("seen", ['"3"', '"2", "3"', "*"])
def test_r3_7_a_request_that_rests_on_the_current_version_is_accepted(seen: str) -> None:
    assert Door().capture(If_Match=seen)[0] == 202


@pytest.mark.parametrize("seen", ['"2"', '"4"', 'W/"3"', '""'])
def test_r3_7_a_request_that_rests_on_another_version_is_refused_with_the_current_one(seen: str) -> None:
    door = Door()
    status, found, headers = door.capture(If_Match=seen)
    assert (status, found["code"], headers["ETag"]) == (412, "outdated", '"3"')
    assert headers["Cache-Control"] == "no-store"
    assert door.is_untouched


def test_an_inventory_is_at_the_version_of_its_head() -> None:
    assert Door().sync("ann", If_Match='"5"')[0] == 202
    assert Door().sync("ann", If_Match='"4"')[2]["ETag"] == '"5"'


@pytest.mark.parametrize("user", ["ann", "bob"])
def test_api1_another_users_resource_is_as_absent_as_one_that_never_was(user: str) -> None:
    door = Door()
    if user == "bob":
        door.database.items[ORDERS.name, ("o",)] = Stored({"order_id": "o", "user_id": "eve"}, 3)
    order = "never" if user == "ann" else "o"
    for seen in ('"3"', "*"):
        status, found, headers = door.capture(order=order, If_Match=seen)
        assert (status, found["code"]) == (412, "outdated")
        assert "ETag" not in headers
    assert door.is_untouched


def test_r3_2_a_replay_is_answered_as_before_whatever_the_version_is_now() -> None:
    door = Door()
    first = door.capture(If_Match='"3"')
    door.order(4)  # by the job itself, perhaps
    status, found, headers = door.capture(If_Match='"3"')
    assert (status, found, headers["Idempotent-Replayed"]) == (202, first[1], "true")
    assert door.capture("another", If_Match='"3"')[0] == 412
    assert len(door.database.records) == 1


def test_a_replay_with_another_payload_is_that_and_not_outdated() -> None:
    door = Door()
    door.capture(If_Match='"3"')
    door.order(4)
    status, found, _ = door.post("capture-payment", {"order_id": "o", "payment_intent_id": "x"}, "k", If_Match='"3"')
    assert (status, found["code"]) == (422, "idempotency-key-reused")


@pytest.mark.parametrize("seen", ["3", "", '"3'])
def test_a_header_that_makes_no_sense_is_refused(seen: str) -> None:
    door = Door()
    status, found, _ = door.capture(If_Match=seen)
    assert (status, found["code"]) == (400, "invalid-etag")
    assert door.is_untouched


def test_i38_without_a_store_that_answers_nobody_says_that_a_version_is_current() -> None:
    door = Door()

    class Gone:
        def read(self, *arguments: Any) -> Any:
            raise StoreUnavailable("gone")

    gone: Any = Gone()
    door.house.door = replaced(door.house, Reads(gone, None))
    assert door.capture(If_Match='"3"')[0] == 503
    assert door.is_untouched
    assert door.capture()[0] == 503  # nor that an order is the caller's
    assert door.sync("ann")[0] == 202  # whose inventory is meant, the request says


def test_api1_nobody_synchronises_anothers_inventory() -> None:
    door = Door()
    for seen in ({}, {"If_Match": '"5"'}, {"If_Match": "*"}):
        status, found, headers = door.sync("bob", **seen)
        assert (status, found["code"]) == (404, "not-found")
        assert "ETag" not in headers
    assert door.is_untouched
    assert door.sync("ann")[0] == 202


@pytest.mark.parametrize("order", ["o", "never", "gone"])
def test_api1_nobody_pays_for_anothers_order_and_it_is_as_absent_as_one_that_never_was(order: str) -> None:
    door = Door()
    door.database.items[ORDERS.name, ("gone",)] = Stored({"order_id": "gone", "user_id": "bob"}, 4, deleted=True)
    payload = {"order_id": order, "payment_intent_id": "pi"}
    status, found, headers = door.post("capture-payment", payload, "k", "bob")
    assert (status, found, "ETag" in headers) == (
        404,
        {"title": "Not Found", "status": 404, "code": "not-found"},
        False,
    )
    assert door.is_untouched  # so no dead letter rings, and none tells by its reason whether the order is there


def test_r3_2_a_replay_is_answered_as_before_although_its_order_is_gone() -> None:
    door = Door()
    first = door.capture()
    del door.database.items[ORDERS.name, ("o",)]
    status, found, headers = door.capture()
    assert (status, found, headers["Idempotent-Replayed"]) == (202, first[1], "true")
    assert door.capture("another")[0] == 404


def test_a_caller_with_aws_credentials_acts_for_users() -> None:
    door = Door()
    assert door.post("sync-inventory", {"user_id": "ann"}, "k", None, If_Match='"5"')[0] == 202
    assert door.post("sync-inventory", {"user_id": "ann"}, "l", None, If_Match='"4"')[0] == 412
    assert door.post("capture-payment", {"order_id": "o", "payment_intent_id": "pi"}, "m", None)[0] == 202


def test_r3_7_a_job_type_whose_intake_is_closed_is_told_so_before_anything_is_looked_at() -> None:
    door = Door()
    operation = door.capture("accepted")[1]["operation_id"]
    door.closures.close("capture-payment", Closed(door.clock.now() + timedelta(minutes=1), "the provider is down"))
    door.clock.pass_(FRESH)
    for key in ("accepted", "new"):
        status, found, headers = door.capture(key)
        assert (status, found["code"]) == (503, "try-again")
        assert 55 <= int(headers["Retry-After"]) <= 75
        assert "provider" not in json.dumps(found)
    assert door.get(operation)[0] == 200
    assert door.sync("ann")[0] == 202
    assert door.telemetry.counts["shed", "capture-payment"] == 2
    door.closures.open("capture-payment")
    door.clock.pass_(FRESH)
    assert door.capture("accepted")[2]["Idempotent-Replayed"] == "true"


def test_what_is_no_job_type_is_never_asked_for() -> None:
    asked: list[str] = []

    class Noting(MemoryIntakeStore):
        def closed(self, job_type: str) -> Closed | None:
            asked.append(job_type)
            return None

    door = Door(closures=Noting())
    assert door.post("made-up", {}, "k")[0] == 404
    assert door.post("refresh-user-cache", {}, "k")[0] == 404
    assert asked == []
    door.capture()
    assert asked == ["capture-payment"]
