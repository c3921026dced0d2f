"""The end of the demo: sums over what was seen, and nothing that belongs to no situation."""

from __future__ import annotations

import json
from dataclasses import replace

from local.demo.observation import ChargeSeen, DeadLetter
from local.demo.over_http import ASKED
from local.demo.situations import SITUATIONS
from tests.local.scene import ANSWERS, READ, SENT, end_of, ideal, put, wrong


def test_the_totals_add_up_to_what_was_sent() -> None:
    totals = end_of(ideal()).totals

    accepted = [answer for answers in ANSWERS.values() for answer in answers if answer.status == 202]
    assert totals.sent == sum(len(messages) for messages in SENT.values()) + len(accepted)
    assert totals.sent == totals.completed + totals.duplicates + totals.dead_lettered
    assert (totals.charged_twice, totals.lost) == (0, 0)


def test_an_end_with_messages_on_the_queue_is_not_ok() -> None:
    assert not end_of(replace(ideal(), in_flight=1)).is_ok
    assert not end_of(replace(ideal(), waiting=1)).is_ok


def test_a_dead_letter_that_nobody_sent_is_noticed() -> None:
    seen = ideal()
    stranger = DeadLetter("?", READ, "unknown-job-type")
    changed = replace(seen, dead_letters=(*seen.dead_letters, stranger), dead=seen.dead + 1)

    assert wrong(changed) == {}
    assert end_of(changed).strangers == 1
    assert not end_of(changed).is_ok


def test_a_charge_for_no_order_is_noticed() -> None:
    seen = ideal()
    stray = (ChargeSeen("ch_99", "30.40", "EUR", "order-nowhere"),)
    changed = replace(seen, charges=put(seen.charges, "pi_ok_nowhere", stray))

    assert wrong(changed) == {}
    assert end_of(changed).stray_charges == 1
    assert not end_of(changed).is_ok


def test_what_was_never_sent_is_not_as_expected() -> None:
    end = end_of(ideal(), sent={}, answers={})

    everything = {each.name for each in (*SITUATIONS, *ASKED)}
    assert {result.name for result in end.results if not result.is_as_expected} == everything


def test_the_report_is_one_line_of_json_with_the_promised_fields() -> None:
    text = end_of(ideal()).as_json()
    whole = json.loads(text)

    assert "\n" not in text
    assert set(whole) == {"situations", "totals", "ok", "seconds"}
    assert set(whole["totals"]) == {"sent", "completed", "duplicates", "dead_lettered", "charged_twice", "lost"}
    assert all(set(situation) == {"name", "expected", "seen", "ok"} for situation in whole["situations"])
    assert all(set(situation["expected"]) == set(situation["seen"]) for situation in whole["situations"])
