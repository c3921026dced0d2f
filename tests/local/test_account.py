"""Each message that was sent is found in what was seen, or it is lost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from local.demo.account import account_for, job_of
from local.demo.observation import DeadLetter, JobSeen, Observation, Word
from tests.local.scene import READ, SENT, end_of, ideal, with_words, wrong

NEW = ("capture-payment", "order-new/capture")


@pytest.mark.parametrize("state", ["accepted", "running", "retrying", "unknown", "dead-lettered", None])
def test_a_message_whose_job_has_not_ended_is_lost_once_the_queue_is_empty(state: str | None) -> None:
    seen = ideal()
    jobs = {key: value for key, value in seen.jobs.items() if key != NEW}
    if state is not None:
        jobs[NEW] = JobSeen(state, 1)
    end = end_of(replace(seen, jobs=jobs))

    assert end.totals.lost == 1
    assert [result.name for result in end.results if not result.is_as_expected] == ["new-order"]
    assert not end.is_ok


@pytest.mark.parametrize("words", [(), (Word("postponed", "held"),), (Word("duplicates"), Word("retried"))])
def test_a_message_that_nobody_brought_to_an_end_is_lost_although_its_job_has_ended(words: tuple[Word, ...]) -> None:
    assert account_for(SENT["two-jobs-one-key"], with_words(two_jobs_one_key_1=words)).lost == 1


def test_messages_under_way_are_neither_lost_nor_completed() -> None:
    account = account_for(SENT["new-order"], Observation(in_flight=1))

    assert (account.completed, account.lost, account.unfinished) == (0, 0, 1)


def test_duplicates_are_messages_that_found_their_job_done() -> None:
    seen = ideal()

    assert account_for(SENT["same-message-three-times"], seen).duplicates == 2
    assert account_for(SENT["two-jobs-one-order"], seen).duplicates == 0


def test_a_message_that_did_its_job_and_came_back_is_no_duplicate() -> None:
    assert wrong(with_words(new_order_0=(Word("succeeded"), Word("duplicates")))) == {}


def test_a_killed_worker_s_words_are_not_missed() -> None:
    found_done = (Word("duplicates"),)
    account = account_for(SENT["two-jobs-one-key"], with_words(two_jobs_one_key_0=found_done))

    assert (account.completed, account.duplicates) == (1, 1)


def test_a_dead_letter_that_is_missing_is_lost() -> None:
    seen = ideal()
    end = end_of(replace(seen, dead_letters=seen.dead_letters[1:], dead=seen.dead - 1))

    assert end.totals.lost == 1
    assert [result.name for result in end.results if not result.is_as_expected] == ["malformed-json"]


def test_a_good_message_in_the_dead_letter_queue_is_noticed() -> None:
    seen = ideal()
    letter = DeadLetter(SENT["new-order"][0].body, READ, "transient")

    assert wrong(replace(seen, dead_letters=(*seen.dead_letters, letter), dead=seen.dead + 1)) == {
        "new-order": ["dead_letters"]
    }


@pytest.mark.parametrize("body", ["{", "[]", '{"job_type": "x"}', "1"])
def test_a_body_that_names_no_job_has_none(body: str) -> None:
    assert job_of(body) is None
