"""The client of the front door: what it sends, and what it makes of answers, against the gateway's twin."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from functions.http.routes import ROUTES
from local.demo.client import Bearer, Client, Request, first_operation
from local.invoking.http_api import HttpApi
from local.outside.tokens import Issuer
from local.processes.ports import free_port
from shared.clock import SystemClock
from shared.errors import SettingsError
from tests.serving import serving

if TYPE_CHECKING:
    from collections.abc import Iterator

ISSUER = Issuer("http://127.0.0.1:8092", "operations", SystemClock())


class Door:
    """A function that remembers its events and answers each with the next number as its operation."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def __call__(self, event: dict[str, Any], context: object) -> dict[str, Any]:
        self.events.append(event)
        replayed = len(self.events) > 1
        headers = {"Idempotent-Replayed": str(replayed).lower(), "ETag": '"7"'}
        return {"statusCode": 202, "headers": headers, "body": json.dumps({"operation_id": f"op_{len(self.events)}"})}


@pytest.fixture
def door() -> Door:
    return Door()


@pytest.fixture
def client(door: Door) -> Iterator[Client]:
    with serving(HttpApi(0, handler=door, routes=ROUTES, issuer=ISSUER)) as api:
        yield Client(api.url, ISSUER)


def test_a_request_brings_its_users_token_its_key_and_its_payload(client: Client, door: Door) -> None:
    (answer,) = client.make(Request("POST", "/operations/note", "user-1", "k", {"a": "b"}))
    (event,) = door.events
    assert event["requestContext"]["authorizer"]["jwt"]["claims"]["sub"] == "user-1"
    assert event["headers"]["idempotency-key"] == "k"
    assert json.loads(event["body"]) == {"a": "b"}
    assert (answer.status, answer.operation, answer.etag, answer.is_replay) == (202, "op_1", '"7"', False)


def test_copies_are_each_answered(client: Client) -> None:
    answers = client.make(Request("POST", "/operations/note", "user-1", "k", {}, copies=3))
    assert sorted(str(answer.operation) for answer in answers) == ["op_1", "op_2", "op_3"]
    assert sum(answer.is_replay for answer in answers) == 2


def test_a_later_request_names_the_operation_and_a_job_for_later_its_time(client: Client, door: Door) -> None:
    client.make(Request("DELETE", "/operations/{operation}", "user-1"), "op_9")
    client.make(Request("POST", "/operations/note", "user-1", "k", {}, run_in=timedelta(hours=1)))
    assert door.events[0]["rawPath"] == "/operations/op_9"
    assert door.events[1]["queryStringParameters"]["run_at"].endswith("+00:00")


@pytest.mark.parametrize("bearer", [Bearer.FORGED, Bearer.NONE])
def test_what_no_issuer_signed_is_not_let_in(client: Client, door: Door, bearer: Bearer) -> None:
    (answer,) = client.make(Request("POST", "/operations/note", "user-1", "k", {}, bearer=bearer))
    assert (answer.status, answer.code, door.events) == (401, None, [])


def test_a_stranger_is_another_user(client: Client, door: Door) -> None:
    client.make(Request("GET", "/operations/op_1", "user-1", bearer=Bearer.STRANGERS))
    assert door.events[0]["requestContext"]["authorizer"]["jwt"]["claims"]["sub"] == "not-user-1"


def test_no_answer_is_an_answer() -> None:
    assert Client(f"http://127.0.0.1:{free_port()}", ISSUER).get("user-1", "/me").status == 0


def test_loc_01_nothing_is_asked_of_another_machine() -> None:
    with pytest.raises(SettingsError):
        Client("https://api.example.com", ISSUER)


def test_the_first_accepted_operation_is_the_situations(client: Client) -> None:
    answers = client.make(Request("POST", "/operations/note", "user-1", "k", {}))
    assert first_operation([*client.make(Request("GET", "/nowhere", "user-1")), *answers]) == "op_1"
    assert first_operation([]) is None
