"""The list of an owner's operations over HTTP: newest first, page by page, and nobody else's."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest

from functions import front_door
from functions.http.answers import HEADERS
from tests.door import Client, payload

if TYPE_CHECKING:
    from tests.stack import Stack


@pytest.fixture
def http(stack: Stack) -> Client:
    return Client(front_door.connect(stack.settings), stack, stack.own)


def accept(http: Client, user: str, orders: range) -> list[str]:
    """Accept a job for each order; give the operations, newest first."""
    return [http.post(payload(f"o{n}"), key=f"k{n}", user=user)[1]["operation_id"] for n in orders][::-1]


def ids(body: dict[str, list[dict[str, str]]]) -> list[str]:
    return [operation["operation_id"] for operation in body["operations"]]


def test_an_owner_sees_its_operations_newest_first_page_by_page(http: Client) -> None:
    newest = accept(http, "lister-1", range(5))
    status, body, headers = http.list("limit=2", user="lister-1")
    assert status == 200
    assert HEADERS.items() <= headers.items()
    seen = ids(body)
    while "next" in body:
        status, body, _ = http.list(urlencode({"limit": 2, "next": body["next"]}), user="lister-1")
        assert status == 200
        seen += ids(body)
    assert seen == newest
    assert ids(http.list(user="lister-1")[1]) == newest


def test_a_list_tells_how_each_operation_stands_and_no_result(http: Client) -> None:
    http.stack.seed(order_id="o90", payment_intent_id="pi_ok_o90")
    (done,) = accept(http, "lister-2", range(90, 91))
    http.stack.run()
    (pending,) = accept(http, "lister-2", range(91, 92))
    operations = http.list(user="lister-2")[1]["operations"]
    assert [(each["operation_id"], each["status"]) for each in operations] == [(pending, "pending"), (done, "done")]
    assert {frozenset(each) for each in operations} == {frozenset(("operation_id", "job_type", "status", "created_at"))}


def test_twenty_are_shown_unless_another_number_is_asked_for(http: Client) -> None:
    accept(http, "lister-3", range(21))
    body = http.list(user="lister-3")[1]
    assert (len(ids(body)), "next" in body) == (20, True)
    body = http.list("limit=100", user="lister-3")[1]
    assert (len(ids(body)), "next" in body) == (21, False)


@pytest.mark.parametrize(
    ("query", "field", "rule"),
    [
        ("limit=0", "limit", "from_1_to_100"),
        ("limit=101", "limit", "from_1_to_100"),
        ("limit=", "limit", "from_1_to_100"),
        ("limit=-1", "limit", "from_1_to_100"),
        ("limit=1e1", "limit", "from_1_to_100"),
        ("limit=%D9%A3", "limit", "from_1_to_100"),  # a digit, but of Arabic
        ("limit=1&limit=2", "limit", "given_twice"),
        ("next=", "next", "not_given_here"),
        ("next=AAAA", "next", "not_given_here"),
        ("status=done", "status", "unknown"),
        ("owner=user-2", "owner", "unknown"),
    ],
)
def test_a_query_that_is_not_understood_is_400_and_named(http: Client, query: str, field: str, rule: str) -> None:
    status, body, headers = http.list(query)
    assert (status, body["code"]) == (400, "invalid-query")
    assert body["errors"] == [{"field": field, "rule": rule}]
    assert headers["Content-Type"] == "application/problem+json"


def test_api1_another_owners_place_and_a_changed_one_are_400(http: Client) -> None:
    accept(http, "lister-4", range(2))
    place = http.list("limit=1", user="lister-4")[1]["next"]
    assert http.list(f"next={place}", user="lister-4")[0] == 200
    assert http.list(f"next={place}", user="lister-5")[0] == 400
    assert http.list(f"next={place[:-2]}", user="lister-4")[0] == 400


def test_api1_nobody_sees_anothers_operations_in_a_list(http: Client) -> None:
    mine = accept(http, "lister-6", range(1))
    theirs = http.list(user="lister-7")
    assert theirs[1] == {"operations": []}
    assert mine[0] not in json.dumps(theirs)
    assert http.list(user=None)[0] == 401
