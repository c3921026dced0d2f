"""The demo's situations over HTTP: each way in which an answer or its job can be wrong turns its situation red, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from local.demo.client import Answer
from local.demo.observation import JobSeen, Times
from local.demo.over_http import ASKED, FIVE, NEW, REUSED
from local.demo.over_http_verdict import job_of_request
from local.demo.situations import SITUATIONS
from tests.local.scene import ANSWERS, BEGUN, OPERATIONS, end_of, ideal, put, wrong

JOBS = {asked.name: job_of_request(asked) for asked in ASKED}


def with_answers(name: str, *answers: Answer) -> dict[str, list[str]]:
    return wrong(ideal(), put(ANSWERS, name, answers))


def test_no_two_situations_share_a_name_a_key_or_an_intent() -> None:
    names = [each.name for each in (*SITUATIONS, *ASKED)]
    intents = [each.order.intent for each in (*SITUATIONS, *ASKED) if each.order]
    assert len(names) == len(set(names))
    assert len(intents) == len(set(intents))
    assert len(set(JOBS.values())) == len(JOBS)


def test_a_situation_lists_an_answer_for_each_request() -> None:
    assert [asked.name for asked in ASKED if len(asked.answers) != sum(each.copies for each in asked.requests)] == []


def test_r3_2_five_operations_for_five_requests_are_noticed() -> None:
    answers = [
        replace(answer, body={"operation_id": f"op_{place}"})
        for place, answer in enumerate(ANSWERS["posted-five-times-at-once"])
    ]
    assert with_answers("posted-five-times-at-once", *answers) == {
        "posted-five-times-at-once": ["operations", "operation"]
    }


def test_a_request_that_began_a_second_job_is_noticed() -> None:
    answers = [
        replace(answer, is_replay=place > 1) for place, answer in enumerate(ANSWERS["posted-five-times-at-once"])
    ]
    assert with_answers("posted-five-times-at-once", *answers) == {
        "posted-five-times-at-once": ["completed", "duplicates"]
    }


def test_r3_2_another_payload_that_is_taken_for_the_first_one_is_noticed() -> None:
    first = ANSWERS["same-key-other-payload"][0]
    assert with_answers("same-key-other-payload", first, replace(first, is_replay=True)) == {
        "same-key-other-payload": ["answers", "duplicates"]
    }


def test_a_stranger_who_is_told_of_an_operation_is_noticed() -> None:
    first, _, last = ANSWERS["another-users-operation"]
    told = Answer(200, first.body)
    assert with_answers("another-users-operation", first, told, last) == {"another-users-operation": ["answers"]}


def test_a_wrong_token_that_lets_in_is_noticed() -> None:
    let_in = Answer(202, {"operation_id": "op_x"})
    assert with_answers("wrong-token", let_in, ANSWERS["wrong-token"][1]) == {
        "wrong-token": ["answers", "operations", "lost"]
    }


def test_an_accepted_job_that_never_ends_is_lost() -> None:
    seen = ideal()
    jobs = put(seen.jobs, JOBS["accepted-over-http"], JobSeen("accepted", 0))
    end = end_of(replace(seen, jobs=jobs))
    assert end.totals.lost == 1
    assert not end.is_ok
    assert wrong(replace(seen, jobs=jobs)) == {"accepted-over-http": ["completed", "lost", "jobs"]}


def test_an_accepted_job_is_under_way_while_messages_are() -> None:
    seen = ideal()
    jobs = put(seen.jobs, JOBS["accepted-over-http"], JobSeen("running", 1))
    (account,) = [
        result.account
        for result in end_of(replace(seen, jobs=jobs, waiting=1)).results
        if result.name == "accepted-over-http"
    ]
    assert (account.unfinished, account.lost) == (1, 0)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"operations": {OPERATIONS["for-later"]: "pending"}}, {"for-later": ["operation"]}),
        ({"times": {JOBS["for-later"]: Times(BEGUN, BEGUN - timedelta(seconds=1))}}, {"for-later": ["waited"]}),
        ({"done_without_relay": frozenset()}, {"relay-is-off": ["done_without_relay"]}),
        (
            {"jobs": {JOBS["cancelled-before-it-begins"]: JobSeen("cancelled", 1)}},
            {"cancelled-before-it-begins": ["jobs"]},
        ),
        ({"requests": {FIVE.intent: 2}}, {"posted-five-times-at-once": ["requests"]}),
        ({"charges": {REUSED.intent: ()}}, {"same-key-other-payload": ["charges", "charged", "charge_id"]}),
        ({"reads": {(NEW.user, f"/me/orders/{NEW.order_id}"): '"1"'}}, {"accepted-over-http": ["read"]}),
        ({"reads": {("ok-over-http", "/me/inventory"): None}}, {"inventory-over-http": ["read"]}),
    ],
    ids=str,
)
def test_what_is_not_as_promised_is_noticed(changes: dict[str, Any], expected: dict[str, list[str]]) -> None:
    seen = ideal()
    changed: dict[str, Any] = {
        name: {**getattr(seen, name), **value} if isinstance(value, dict) else value for name, value in changes.items()
    }
    assert wrong(replace(seen, **changed)) == expected


def test_what_is_cached_of_an_order_that_nobody_touched_stays() -> None:
    seen = ideal()
    left = seen.cached - {"cart/user-of-order-forged"}
    gone = frozenset(tag for tag in seen.cached if "order-forged" not in tag)
    assert wrong(replace(seen, cached=left)) == {}  # one tag of three may have been another's
    assert wrong(replace(seen, cached=gone)) == {"wrong-token": ["invalidated"]}
