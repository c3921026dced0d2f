"""The demo's verdict: what must be noticed is noticed, and every number comes from what was seen."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from local.observation import DeadLetter, Observation
from local.situations import EVENTS, SITUATIONS, Situation, Trouble
from local.verdict import Report, account_for, judge, key_of, report

SENT = {situation.name: situation.bodies for situation in SITUATIONS}


def ideal() -> Observation:
    """What is seen when everything ends as it must."""
    letters = [
        DeadLetter(body, reason)
        for situation in SITUATIONS
        for body, reason in zip(situation.bodies, situation.dead_letters, strict=False)
    ]
    orders = [situation.order for situation in SITUATIONS if situation.order]
    keys = [key_of(body) for situation in SITUATIONS if situation.completed for body in situation.bodies]
    return Observation(
        dead=len(letters),
        dead_letters=tuple(letters),
        orders={order.order_id: order.ends for order in orders},
        jobs={key: "completed" for key in keys if key},
        charges={order.intent: order.charges for order in orders if order.charges},
        provoked=frozenset(order.intent for order in orders),
        killed=1,
    )


def verdict(
    observation: Observation, sent: dict[str, tuple[str, ...]] | None = None, *, troubled: bool = True
) -> Report:
    known = SENT if sent is None else sent
    results = [judge(s, known.get(s.name, ()), observation, is_troubled=troubled) for s in SITUATIONS]
    return report(results, observation, 1.0)


def wrong(end: Report) -> list[str]:
    return [result.name for result in end.results if not result.is_as_expected]


def test_the_ideal_end_is_ok() -> None:
    end = verdict(ideal())

    assert end.is_ok
    assert wrong(end) == []


def test_the_totals_add_up_to_what_was_sent() -> None:
    totals = verdict(ideal()).totals

    assert totals.sent == sum(len(bodies) for bodies in SENT.values())
    assert totals.sent == totals.completed + totals.duplicates + totals.dead_lettered
    assert (totals.charged_twice, totals.lost) == (0, 0)


def test_a_second_charge_is_noticed() -> None:
    seen = ideal()
    end = verdict(replace(seen, charges={**seen.charges, "pi_ok_raced": 2}))

    assert end.totals.charged_twice == 1
    assert wrong(end) == ["two-jobs-one-order"]


def test_a_charge_that_was_never_made_is_noticed() -> None:
    seen = ideal()
    end = verdict(replace(seen, charges={**seen.charges, "pi_ok_new": 0}))

    assert wrong(end) == ["new-order"]


@pytest.mark.parametrize("state", ["accepted", "running", "retrying", "unknown", "dead-lettered", None])
def test_a_message_whose_job_has_not_ended_is_lost_once_the_queue_is_empty(state: str | None) -> None:
    seen = ideal()
    jobs = {key: value for key, value in seen.jobs.items() if key != "order-new/capture"}
    end = verdict(replace(seen, jobs=jobs if state is None else {**jobs, "order-new/capture": state}))

    assert end.totals.lost == 1
    assert wrong(end) == ["new-order"]
    assert not end.is_ok


def test_an_end_with_messages_on_the_queue_is_not_ok() -> None:
    assert not verdict(replace(ideal(), in_flight=1)).is_ok
    assert not verdict(replace(ideal(), waiting=1)).is_ok


def test_a_dead_letter_with_another_reason_is_noticed() -> None:
    seen = ideal()
    letters = tuple(replace(letter, reason=None) for letter in seen.dead_letters)

    assert wrong(verdict(replace(seen, dead_letters=letters))) == ["malformed-json", "wrong-payload", "unknown-order"]


def test_a_dead_letter_that_is_missing_is_lost() -> None:
    seen = ideal()
    end = verdict(replace(seen, dead_letters=seen.dead_letters[1:], dead=seen.dead - 1))

    assert end.totals.lost == 1
    assert wrong(end) == ["malformed-json"]


def test_a_dead_letter_that_nobody_sent_is_noticed() -> None:
    seen = ideal()
    end = verdict(
        replace(seen, dead_letters=(*seen.dead_letters, DeadLetter("?", "unknown-job-type")), dead=seen.dead + 1)
    )

    assert wrong(end) == []
    assert end.strangers == 1
    assert not end.is_ok


def test_a_good_message_in_the_dead_letter_queue_is_noticed() -> None:
    seen = ideal()
    letter = DeadLetter(SENT["new-order"][0], "transient")
    end = verdict(replace(seen, dead_letters=(*seen.dead_letters, letter), dead=seen.dead + 1))

    assert wrong(end) == ["new-order"]


def test_a_harm_that_did_not_happen_proves_nothing() -> None:
    seen = ideal()

    assert wrong(verdict(replace(seen, provoked=seen.provoked - {"pi_lost_answer"}))) == [
        "provider-charges-and-times-out"
    ]
    assert wrong(verdict(replace(seen, killed=0))) == ["worker-killed"]
    assert "redis-stopped" in wrong(verdict(seen, troubled=False))


def test_what_was_never_sent_is_not_as_expected() -> None:
    assert set(wrong(verdict(ideal(), sent={}))) == {situation.name for situation in SITUATIONS}


def test_duplicates_are_messages_of_one_key_beyond_the_first() -> None:
    seen = ideal()

    assert account_for(SENT["same-message-three-times"], seen).duplicates == 2
    assert account_for(SENT["two-jobs-one-order"], seen).duplicates == 0


def test_messages_under_way_are_neither_lost_nor_completed() -> None:
    account = account_for(SENT["new-order"], Observation(in_flight=1))

    assert (account.completed, account.lost, account.unfinished) == (0, 0, 1)


def test_the_report_is_one_line_of_json_with_the_promised_fields() -> None:
    text = verdict(ideal()).as_json()
    whole = json.loads(text)

    assert "\n" not in text
    assert set(whole) == {"situations", "totals", "ok", "seconds"}
    assert set(whole["totals"]) == {"sent", "completed", "duplicates", "dead_lettered", "charged_twice", "lost"}
    assert all(set(situation) == {"name", "expected", "seen", "ok"} for situation in whole["situations"])
    assert all(set(situation["expected"]) == set(situation["seen"]) for situation in whole["situations"])


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda situation: situation.name)
def test_a_situation_sends_what_it_accounts_for(situation: Situation) -> None:
    assert len(situation.bodies) == situation.completed + situation.duplicates + len(situation.dead_letters)


def test_every_event_file_is_a_situation() -> None:
    assert sorted(path.stem for path in EVENTS.glob("*.json")) == sorted(situation.name for situation in SITUATIONS)


def test_each_trouble_has_its_situation() -> None:
    assert {situation.trouble for situation in SITUATIONS} == set(Trouble)
