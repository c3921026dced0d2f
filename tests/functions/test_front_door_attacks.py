"""What an attacker sends: names that no store takes, forged places, fields named to mislead; and a store that fails at each call."""

from __future__ import annotations

import base64
import contextlib
import json
import socket
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from functions import front_door
from functions.http.caller import LONGEST_OWNER, owner_of
from functions.http.conditional import LONGEST, read_etags
from shared.errors import Malformed
from shared.intake.owned_jobs import Place, _digest
from shared.payload import LONGEST_NAME, MOST_TOLD
from shared.settings import OwnerLimits
from shared.wire.parsing import read_message
from tests.door import LOOK, Client, payload
from tests.functions.house import House

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.door import Answer
    from tests.stack import Stack

PLENTY = OwnerLimits(requests_per_second=1000, burst=1000, unfinished=1000)
ISSUER = LOOK["requestContext"]["authorizer"]["jwt"]["claims"]["iss"]
OWNER = f"jwt:{ISSUER}:user-1"


def caller(subject: str) -> dict[str, Any]:
    return {"jwt": {"claims": {"sub": subject, "iss": ISSUER}}}


@pytest.mark.parametrize("subject", ["x" * LONGEST_OWNER, "ü" * LONGEST_OWNER, "\ud800"])
def test_api2_a_caller_whose_name_no_store_takes_is_nobody_on_every_route(subject: str) -> None:
    house = House(PLENTY)
    asked = [
        house.http.request("GET", path, authorizer=caller(subject))
        for path in ("/me", "/operations", "/operations/op_")
    ]
    asked.append(house.http.request("POST", "/operations/capture-payment", authorizer=caller(subject)))
    assert {(status, body["code"]) for status, body, _ in asked} == {(401, "unauthenticated")}
    assert {headers["WWW-Authenticate"] for _, _, headers in asked} == {"Bearer"}
    assert not house.database.records


def test_the_longest_name_that_is_taken_is_a_key_of_an_index(stack: Stack) -> None:
    subject = "x" * (LONGEST_OWNER - len(f"jwt:{ISSUER}:"))
    assert owner_of({"requestContext": {"authorizer": caller(subject)}})
    http = Client(front_door.connect(stack.settings), stack, stack.own)
    assert http.post(payload("long"), key="long", user=subject)[0] == 202
    assert len(http.list(user=subject)[1]["operations"]) == 1


@pytest.mark.parametrize(
    ("created_at", "record"),
    [
        ("2026-11-29T10:00:00+00:00", ""),
        ("2026-11-29T10:00:00+00:00", "0" * 3000),
        ("2026-11-29T10:00:00+00:00", "latest/x"),
        ("2026-11-29T10:00:00+00:00", "\ud800"),
        ("2026-11-29T10:00:00+00:00", 7),
        ("2026-11-29 10:00:00+00:00", "0" * 64),
        ("2026-W48-1", "0" * 64),
        (7, "0" * 64),
    ],
)
def test_api4_a_forged_place_with_a_digest_that_fits_is_refused_if_it_was_never_given(
    created_at: Any, record: Any
) -> None:
    fields = json.dumps([created_at, record, _digest(OWNER, created_at, record)])
    forged = base64.urlsafe_b64encode(fields.encode()).decode().rstrip("=")
    with pytest.raises(Malformed) as refused:
        Place.read(forged, OWNER)
    assert refused.value.reason == "invalid-query"
    assert House(PLENTY).http.list(f"next={forged}")[0] == 400


@pytest.mark.parametrize("zone", ["+00:00:30", "-23:59:59.999999", "+05:30"])
def test_i4_what_is_accepted_for_later_is_a_message_that_its_worker_can_read(zone: str) -> None:
    house = House(PLENTY)
    query = f"run_at=2026-12-24T18:00:00{zone.replace('+', '%2B')}"
    status, _, _ = house.http.post(payload("o"), query=query)
    assert status == 202
    (posting,) = house.database.outbox.values()
    assert read_message(posting.body).run_at is not None


@pytest.mark.parametrize("moment", ["9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00%2B23:59"])
def test_i4_a_moment_that_has_no_time_in_utc_is_refused(moment: str) -> None:
    house = House(PLENTY)
    assert house.http.post(payload("o"), query=f"run_at={moment}")[1]["code"] == "invalid-run-at"


def test_api3_a_field_that_is_named_to_mislead_is_told_as_one_field_and_short() -> None:
    house = House(PLENTY)
    names = ["a: b; admin: is_required", "n" * 5000, "é\n\u202e"]
    _, body, _ = house.http.post({**payload("o"), **dict.fromkeys(names, 1)})
    assert {error["rule"] for error in body["errors"]} == {"extra_forbidden"}
    assert len(body["errors"]) == len(names)
    assert all(len(error["field"]) <= LONGEST_NAME for error in body["errors"])


def test_api4_of_many_wrong_fields_some_are_told_and_the_rest_counted() -> None:
    _, body, _ = House(PLENTY).http.post({**payload("o"), **{f"x{n}": 1 for n in range(5000)}})
    assert len(body["errors"]) == MOST_TOLD + 1
    assert body["errors"][-1] == {"field": "body", "rule": f"{5000 - MOST_TOLD}_more"}


@pytest.mark.parametrize("header", ['"7",', ',, "7"', '"7" ,\t, W/"8",', '"6",,"7"'])
def test_empty_elements_of_a_list_of_etags_are_read_over(header: str) -> None:
    found = read_etags(header, "If-Match")
    assert found is not None
    assert found.names('"7"')


@pytest.mark.timeout(20)
@pytest.mark.parametrize("header", [",", ", ,", "  ", " ," * (LONGEST // 2 - 2) + "x", '"7"' + " ," * 490 + "x"])
def test_api4_a_list_without_an_etag_is_refused_however_it_is_written(header: str) -> None:
    with pytest.raises(Malformed):
        read_etags(header, "If-Match")


@pytest.mark.timeout(60)
def test_i38_a_silent_store_is_told_with_when_to_come_again_before_the_time_is_up(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", f"http://127.0.0.1:{silent.getsockname()[1]}")
        monkeypatch.setattr(front_door, "READ_SECONDS", 0.1)
        http = Client(front_door.connect(stack.settings))
        asked: list[tuple[Callable[[], Answer], int]] = [
            (lambda: http.post(payload("silent")), 2),
            (http.list, 1),
            (lambda: http.get("op_" + "0" * 64), 1),
        ]
        for ask, calls in asked:
            status, body, headers = ask()
            assert (status, body["code"], headers["Retry-After"]) == (503, "try-again", "2")
            silent.settimeout(0.5)
            tried = 0
            with contextlib.suppress(TimeoutError):
                while True:
                    silent.accept()[0].close()
                    tried += 1
            assert tried == calls * front_door.ATTEMPTS


THROTTLED = ClientError(
    {"Error": {"Code": "ThrottlingException"}, "ResponseMetadata": {"HTTPStatusCode": 400}},  # type: ignore[typeddict-item]
    "Any",
)
NO_REPLY = ReadTimeoutError(endpoint_url="https://dynamodb.example.com")
CALLS = ("get_item", "query", "transact_write_items", "batch_get_item", "update_item")


class Failing:
    """A client of DynamoDB whose call of that number fails: not done, or done and its reply lost."""

    def __init__(self, inner: Any, number: int, *, done: bool) -> None:
        self.inner, self.number, self.done, self.calls = inner, number, done, 0

    def __getattr__(self, name: str) -> Any:
        call = getattr(self.inner, name)
        return self._failing(call) if name in CALLS else call

    def _failing(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def fail(**asked: Any) -> Any:
            self.calls += 1
            if self.calls != self.number:
                return call(**asked)
            if self.done:
                call(**asked)
                raise NO_REPLY
            raise THROTTLED

        return fail


ROUTES: dict[str, Callable[[Client, str, str], Answer]] = {
    "accept": lambda http, key, _: http.post(
        payload("each"), key=key, headers={"Idempotency-Key": key, "If-Match": "*"}
    ),
    "look": lambda http, _, operation: http.get(operation),
    "list": lambda http, _, __: http.list(),
    "cancel": lambda http, _, operation: http.delete(operation),
    "order": lambda http, _, __: http.request("GET", "/me/orders/each"),
}


@pytest.mark.parametrize("done", [False, True])
@pytest.mark.parametrize("route", ROUTES)
def test_i38_whichever_call_fails_the_answer_is_503_with_when_to_come_again_and_the_repeat_has_one_job(
    stack: Stack, monkeypatch: pytest.MonkeyPatch, route: str, done: bool
) -> None:
    make: Any = vars(front_door)["client"]
    calm = Client(front_door.connect(stack.settings), stack, stack.own)
    for number in range(1, 9):
        key = f"{route}-{done}-{number}"
        operation = calm.post(payload("each"), key=f"{key}-before")[1]["operation_id"]
        failing = Failing(make("dynamodb"), number, done=done)
        monkeypatch.setattr(front_door, "client", lambda _, it=failing, **__: it)
        http = Client(front_door.connect(replace(stack.settings, cache_host="")))
        monkeypatch.undo()
        status, body, headers = ROUTES[route](http, key, operation)
        if failing.calls < number:
            assert number > 1
            return
        if status == 503:
            assert (body["code"], headers["Retry-After"]) == ("try-again", "2")
        else:
            assert (route, status, number) == (
                "accept",
                202,
                1,
            )  # whether intake is closed: nobody knows, so it is open
        assert ROUTES[route](http, key, operation)[0] in {200, 202}
        items = stack.database.client.scan(TableName=stack.settings.outbox_table, ConsistentRead=True)["Items"]
        assert sum(f'"{key}"' in item["body"]["S"] for item in items) == (route == "accept")
    pytest.fail("a request makes a few calls, not so many")
