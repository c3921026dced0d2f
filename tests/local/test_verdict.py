"""The demo's verdict: each way in which a product can be wrong turns its situation red, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from functions.registry import WORKERS
from local.demo.observation import JobSeen, OrderSeen, Word
from local.demo.over_http import ASKED
from local.demo.situations import EVENTS, PAYMENTS, SITUATIONS, Situation, Trouble
from tests.local.scene import BEGUN, FAILED, READ, RECONCILING, end_of, ideal, put, with_words, wrong
from tests.unplayed import UNPLAYED

NEW = ("capture-payment", "order-new/capture")


def test_the_ideal_end_is_ok() -> None:
    assert end_of(ideal()).is_ok
    assert wrong(ideal()) == {}


def test_a_second_charge_is_noticed() -> None:
    seen = ideal()
    twice = seen.charges["pi_slow_raced"] * 2

    assert end_of(replace(seen, charges=put(seen.charges, "pi_slow_raced", twice))).totals.charged_twice == 1
    assert wrong(replace(seen, charges=put(seen.charges, "pi_slow_raced", twice))) == {
        "two-jobs-one-order": ["charges", "charged"]
    }


def test_a_charge_that_was_never_made_is_noticed() -> None:
    seen = ideal()

    assert wrong(replace(seen, charges=put(seen.charges, "pi_ok_new", ()))) == {
        "new-order": ["charges", "charged", "charge_id"]
    }


@pytest.mark.parametrize(
    "other",
    [{"amount": "99999.00"}, {"currency": "USD"}, {"order_id": "order-thrice"}],
    ids=lambda other: next(iter(other)),
)
def test_a_charge_for_something_else_than_the_order_is_noticed(other: dict[str, Any]) -> None:
    seen = ideal()
    (charge,) = seen.charges["pi_ok_new"]

    assert wrong(replace(seen, charges=put(seen.charges, "pi_ok_new", (replace(charge, **other),)))) == {
        "new-order": ["charged"]
    }


@pytest.mark.parametrize("charge_id", ["garbage", None])
def test_an_order_with_another_charge_id_than_the_ledger_s_is_noticed(charge_id: str | None) -> None:
    seen = ideal()

    assert wrong(replace(seen, orders=put(seen.orders, "order-new", OrderSeen("paid", charge_id)))) == {
        "new-order": ["charge_id"]
    }


def test_a_cached_value_that_outlived_the_commit_is_noticed() -> None:
    seen = ideal()

    def with_left(tag: str) -> dict[str, list[str]]:
        return wrong(replace(seen, cached=seen.cached | {tag}))

    assert with_left("order/order-new") == {"new-order": ["invalidated"]}
    assert with_left("cart/user-of-order-no-redis") == {"redis-stopped": ["invalidated"]}
    assert with_left("cart/user-of-order-http") == {"accepted-over-http": ["invalidated"]}


def test_what_was_never_cached_proves_no_invalidation() -> None:
    seen = ideal()

    assert wrong(replace(seen, was_cached=seen.was_cached - {"order/order-new"})) == {"new-order": ["invalidated"]}


def test_two_jobs_that_asked_the_provider_at_one_time_are_noticed() -> None:
    seen = ideal()

    assert wrong(replace(seen, requests=put(seen.requests, "pi_slow_raced", 2))) == {"two-jobs-one-order": ["requests"]}


def test_two_jobs_that_never_met_prove_nothing() -> None:
    assert wrong(with_words(two_jobs_one_order_1=(Word("succeeded"),))) == {"two-jobs-one-order": ["contended"]}


def test_a_job_that_waited_for_redis_is_noticed() -> None:
    assert wrong(replace(ideal(), paid_without_redis=frozenset())) == {"redis-stopped": ["paid_without_redis"]}


def test_an_ended_job_that_ran_again_is_noticed() -> None:
    assert wrong(with_words(same_message_three_times_2=(Word("succeeded"),))) == {
        "same-message-three-times": ["completed", "duplicates"]
    }


def test_an_attempt_too_many_is_noticed() -> None:
    seen = ideal()

    assert wrong(replace(seen, jobs=put(seen.jobs, NEW, JobSeen("completed", 2)))) == {"new-order": ["jobs"]}


def test_a_paid_order_whose_job_says_failed_is_noticed() -> None:
    seen = ideal()

    assert wrong(replace(seen, jobs=put(seen.jobs, NEW, JobSeen("failed", 1)))) == {"new-order": ["jobs"]}


def test_a_lost_answer_that_was_simply_tried_again_is_noticed() -> None:
    assert wrong(replace(ideal(), postings=())) == {"provider-charges-and-times-out": ["reconciled", "outbox_sent"]}


def test_a_reconciling_job_that_was_not_sent_or_not_done_is_noticed() -> None:
    seen = ideal()
    (posting,) = seen.postings

    assert wrong(replace(seen, postings=(replace(posting, is_sent=False),))) == {
        "provider-charges-and-times-out": ["outbox_sent"]
    }
    assert wrong(replace(seen, jobs=put(seen.jobs, RECONCILING, JobSeen("running", 1)))) == {
        "provider-charges-and-times-out": ["reconciled"]
    }


@pytest.mark.parametrize("waits", [{}, {"pi_429_hurry": 2.9}])
def test_a_wait_that_the_provider_asked_for_in_vain_is_noticed(waits: dict[str, float]) -> None:
    assert wrong(replace(ideal(), shortest_waits=waits)) == {"provider-rate-limits": ["waited"]}


@pytest.mark.parametrize(
    "other",
    [
        {"attempts": None},
        {"attempts": 7},
        {"error": None},
        {"error": "something"},
        {"first": None},
        {"last": None},
        {"first": BEGUN - timedelta(seconds=1)},
        {"first": FAILED + timedelta(milliseconds=1)},
        {"last": READ + timedelta(milliseconds=1)},
    ],
    ids=str,
)
def test_a_dossier_that_tells_nothing_or_something_impossible_is_noticed(other: dict[str, Any]) -> None:
    seen = ideal()
    letters = tuple(
        replace(letter, **other) if letter.reason == "unknown-order" else letter for letter in seen.dead_letters
    )

    assert wrong(replace(seen, dead_letters=letters)) == {"unknown-order": ["dossiers"]}


def test_a_dead_letter_with_another_reason_is_noticed() -> None:
    seen = ideal()
    letters = tuple(replace(letter, reason=None) for letter in seen.dead_letters)

    assert wrong(replace(seen, dead_letters=letters)) == {
        "malformed-json": ["dead_letters"],
        "wrong-payload": ["dead_letters"],
        "unknown-order": ["dead_letters"],
    }


def test_a_harm_that_did_not_happen_proves_nothing() -> None:
    seen = ideal()

    assert wrong(replace(seen, provoked=seen.provoked - {"pi_lost_answer"})) == {
        "provider-charges-and-times-out": ["provoked"]
    }
    assert wrong(replace(seen, killed=0)) == {"worker-killed": ["killed"]}


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda situation: situation.name)
def test_a_situation_sends_what_it_accounts_for(situation: Situation) -> None:
    assert len(situation.bodies) == situation.completed + situation.duplicates + len(situation.dead_letters)


def test_every_event_file_of_payments_is_a_situation() -> None:
    paying = [situation.name for situation in PAYMENTS]
    assert sorted(path.stem for path in EVENTS.glob("*.json")) == sorted(paying)


def test_every_worker_has_a_situation_or_a_demo_of_its_own() -> None:
    own = {
        "imports",
        "canary",
    }  # local/imports/__main__.py: its file would outlast every other situation; `tahan smoke`
    played = {situation.worker for situation in SITUATIONS} | own
    assert played == {worker.name for worker in WORKERS} - UNPLAYED


def test_an_old_value_that_is_read_after_the_end_is_noticed() -> None:
    seen = ideal()
    place = ("user-changed", "/me")
    assert wrong(replace(seen, reads=put(seen.reads, place, '"1"'))) == {"changed-user": ["read"]}
    assert wrong(replace(seen, first_reads=put(seen.first_reads, place, '"2"'))) == {"changed-user": ["read"]}


@pytest.mark.parametrize("told", [(), (3, 3), (2,)])
def test_a_notice_that_is_missing_or_was_sent_twice_is_noticed(told: tuple[int, ...]) -> None:
    seen = ideal()
    assert wrong(replace(seen, notices=put(seen.notices, "inv-changed", told))) == {"changed-invoice": ["notices"]}


def test_each_trouble_has_its_situation() -> None:
    assert {situation.trouble for situation in SITUATIONS} == set(Trouble)


def test_no_two_orders_share_a_cache_tag() -> None:
    tags = [tag for each in (*SITUATIONS, *ASKED) if each.order for tag in each.order.tags]

    assert len(tags) == len(set(tags))
