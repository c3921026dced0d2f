"""HTTP as API Gateway hands it on: what gets through becomes its event, what does not is refused in its words."""

from __future__ import annotations

import http.client
import json
from typing import TYPE_CHECKING, Any

import pytest

from functions.http.routes import ROUTES, Route
from local.invoking.http_api import MOST_BYTES, Call, HttpApi
from local.outside.tokens import Issuer
from shared.clock import SystemClock
from tests.door import ACCEPT
from tests.serving import serving

if TYPE_CHECKING:
    from collections.abc import Iterator


class Api:
    """An API before a function that notes its events and answers them alike."""

    def __init__(self, issuer: Issuer) -> None:
        self.events: list[dict[str, Any]] = []
        self.answer: dict[str, Any] = {"statusCode": 200, "headers": {"x-more": "1"}, "body": "é"}
        self.server = HttpApi(0, handler=self.handle, routes=[*ROUTES, Route("GET", "/operations/all")], issuer=issuer)
        self.token = issuer.token("user-1")

    def handle(self, event: dict[str, Any], context: Call) -> dict[str, Any]:
        assert context.get_remaining_time_in_millis() > 0
        self.events.append(event)
        if not self.answer:
            raise RuntimeError
        return self.answer

    def ask(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> tuple[int, bytes, dict[str, str]]:
        connection = http.client.HTTPConnection(self.server.url.removeprefix("http://"), timeout=20)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, {"Authorization": f"Bearer {self.token}", **named})
        answer = connection.getresponse()
        read = answer.status, answer.read(), {name.lower(): value for name, value in answer.getheaders()}
        connection.close()
        return read


@pytest.fixture(scope="module")
def issuer() -> Issuer:
    return Issuer("https://login.example.com", "operations", SystemClock())


@pytest.fixture
def api(issuer: Issuer) -> Iterator[Api]:
    api = Api(issuer)
    with serving(api.server):
        yield api


def test_a_request_becomes_an_event_of_the_shape_that_the_sample_has(api: Api) -> None:
    status, body, headers = api.ask(
        "POST", "/operations/capture-payment", b'{"a":1}', Content_Type="application/json", Idempotency_Key="k"
    )
    assert (status, body.decode(), headers["x-more"]) == (200, "é", "1")
    (event,) = api.events
    assert {*ACCEPT} <= {*event}
    assert {*ACCEPT["requestContext"]} <= {*event["requestContext"]}
    assert {*ACCEPT["requestContext"]["http"]} == {*event["requestContext"]["http"]}
    assert (event["routeKey"], event["pathParameters"]) == (
        "POST /operations/{job_type}",
        {"job_type": "capture-payment"},
    )
    assert (event["body"], event["isBase64Encoded"], event["headers"]["idempotency-key"]) == ('{"a":1}', False, "k")
    claims = event["requestContext"]["authorizer"]["jwt"]["claims"]
    assert (claims["sub"], claims["iss"]) == ("user-1", "https://login.example.com")
    assert {type(value) for value in claims.values()} == {str}


def test_the_path_comes_decoded_and_the_query_as_it_was_sent(api: Api) -> None:
    api.ask("GET", "/operations/a%20b%3Fc?limit=%31&x=1&x=2")
    (event,) = api.events
    assert (event["rawPath"], event["pathParameters"]) == ("/operations/a b?c", {"operation_id": "a b?c"})
    assert event["rawQueryString"] == "limit=%31&x=1&x=2"
    assert event["queryStringParameters"] == {"limit": "1", "x": "1,2"}
    assert "body" not in event


def test_a_route_without_parameters_wins(api: Api) -> None:
    api.ask("GET", "/operations/all")
    assert api.events[0]["routeKey"] == "GET /operations/all"


@pytest.mark.parametrize(
    ("kind", "content"),
    [("application/octet-stream", b"\xff"), ("application/json", b"\xff"), ("", b"{}")],
)
def test_what_is_no_text_comes_in_base64(api: Api, kind: str, content: bytes) -> None:
    api.ask("POST", "/operations/x", content, Content_Type=kind)
    assert api.events[0]["isBase64Encoded"]


@pytest.mark.parametrize("authorization", ["", "Bearer ", "Bearer x", "Basic dTpw"])
def test_api2_without_a_good_token_nothing_comes_through(api: Api, authorization: str) -> None:
    status, body, headers = api.ask("GET", "/operations", Authorization=authorization)
    assert (status, json.loads(body), headers["www-authenticate"]) == (401, {"message": "Unauthorized"}, "Bearer")
    assert api.events == []


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/"), ("PUT", "/operations"), ("GET", "/operations/a/b"), ("TRACE", "/operations")]
)
def test_only_the_routes_are_there(api: Api, method: str, path: str) -> None:
    status, body, _ = api.ask(method, path)
    assert (status, json.loads(body)) == (404, {"message": "Not Found"})
    assert api.events == []


@pytest.mark.parametrize("length", [str(MOST_BYTES + 1), "-1", "many"])
def test_what_is_too_large_is_not_read(api: Api, length: str) -> None:
    assert api.ask("POST", "/operations/x", None, Content_Length=length)[0] == 413
    assert api.events == []


def test_a_function_that_fails_is_500_without_its_reason(api: Api) -> None:
    api.answer = {}
    status, body, _ = api.ask("GET", "/operations")
    assert (status, json.loads(body)) == (500, {"message": "Internal Server Error"})


def test_an_answer_in_base64_is_decoded(api: Api) -> None:
    api.answer = {"statusCode": 201, "body": "/w==", "isBase64Encoded": True}
    assert api.ask("GET", "/operations")[:2] == (201, b"\xff")
