"""The event files of the demo's requests: each says what the demo asks over HTTP, and the function answers it as there."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from functions import front_door
from local.demo.client import Bearer
from local.demo.over_http import ASKED, Asked
from tests.door import EVENTS, Client, payload

if TYPE_CHECKING:
    from tests.stack import Stack

NAMED = pytest.mark.parametrize("asked", ASKED, ids=lambda asked: asked.name)


def event_of(asked: Asked) -> dict[str, Any]:
    event: dict[str, Any] = json.loads((EVENTS / f"{asked.name}.json").read_text(encoding="utf-8"))
    return event


@NAMED
def test_an_event_file_is_the_demos_request(asked: Asked) -> None:
    event, request = event_of(asked), asked.requests[0]
    assert (event["requestContext"]["http"]["method"], event["rawPath"]) == (request.method, request.path)
    assert event["headers"]["idempotency-key"] == request.key
    assert json.loads(event["body"]) == request.payload
    assert ("run_at" in event["rawQueryString"]) == (request.run_in is not None)
    let_in = event["requestContext"].get("authorizer")
    assert (let_in and let_in["jwt"]["claims"]["sub"]) == (request.user if request.bearer is Bearer.OWN else None)


@NAMED
def test_the_function_answers_it_as_the_demo_expects(asked: Asked, stack: Stack) -> None:
    client = Client(front_door.connect(stack.settings), stack, stack.own)
    assert str(client.ask(event_of(asked))[0]) == asked.answers[0]


def test_the_sample_of_a_list_gives_its_users_own_operations(stack: Stack) -> None:
    client = Client(front_door.connect(stack.settings), stack, stack.own)
    asked = json.loads((EVENTS / "list.json").read_text(encoding="utf-8"))
    user = asked["requestContext"]["authorizer"]["jwt"]["claims"]["sub"]
    started = client.post(payload("o-listed"), key="k-listed", user=user)[1]["operation_id"]
    client.post(payload("o-other"), key="k-other", user="somebody-else")
    status, body, _ = client.ask(asked)
    assert status == 200
    assert started in [each["operation_id"] for each in body["operations"]]
    assert len(body["operations"]) <= int(asked["queryStringParameters"]["limit"])
