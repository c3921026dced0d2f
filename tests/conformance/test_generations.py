"""R1.1: a key that is unique only while its job is active names one job after the other, and never two at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from shared.backends.memory.database import MemoryDatabase
from shared.claim import NAMES_KEPT, Ended, Granted, HeldByOther, KeyReused, Step, decide
from shared.commit import Commit
from shared.intake.acceptance import Accepted, OtherPayload, Overtaken, Replayed
from shared.job_record import RETENTION, Status, record_id
from shared.outbox import LONGEST_SCHEDULE
from tests.conformance.accepting import asked, claim_of
from tests.conformance.claims import FAILURE, again, claim, granted
from tests.world import START

if TYPE_CHECKING:
    from shared.intake.acceptance import Acceptance
    from tests.conformance.accepting import Doors
    from tests.conformance.conftest import Stores

ENDED = START + timedelta(minutes=1)
LATER = START + timedelta(hours=1)


# What a store does with the messages of one key.


def named(job_id: str, made: Any = START, **changes: Any) -> Any:
    return claim(job_id=job_id, reopens=made, **changes)


def done(stores: Stores, first: Any) -> None:
    stores.records.commit(granted(stores, first).hold, Commit(Status.COMPLETED, '"first"'), ENDED)


def test_another_message_made_after_the_end_is_another_job(stores: Stores) -> None:
    first = named("a")
    done(stores, first)
    second = again(first, job_id="b", reopens=LATER, fingerprint="1:bbbb")
    assert granted(stores, second, LATER).attempt == 1
    view = stores.records.view(first.record)
    assert (view.status, view.result, view.job_id, view.fingerprint) == (Status.RUNNING, None, "b", "1:bbbb")
    stores.records.commit(granted(stores, second, LATER).hold, Commit(Status.COMPLETED), LATER)
    copy = again(second, job_id="b", reopens=LATER, fingerprint="1:bbbb")
    assert isinstance(stores.records.claim(copy, LATER), Ended)


def test_a_message_made_while_the_job_was_active_is_a_duplicate(stores: Stores) -> None:
    first = named("a")
    done(stores, first)
    assert isinstance(stores.records.claim(again(first, job_id="b", reopens=ENDED), LATER), Ended)


def test_a_copy_whose_producer_has_a_clock_ahead_is_a_duplicate(stores: Stores) -> None:
    first = named("a", made=LATER)
    done(stores, first)
    assert isinstance(stores.records.claim(again(first, job_id="a", reopens=LATER), LATER), Ended)


def test_an_old_copy_whose_producer_has_a_clock_ahead_runs_no_second_time(stores: Stores) -> None:
    first = named("a", made=LATER + timedelta(hours=1))
    done(stores, first)
    second = again(first, job_id="b", reopens=LATER)
    for job_id in ("b", "c", "d"):
        third = again(second, job_id=job_id, reopens=LATER)
        stores.records.commit(
            granted(stores, third, LATER).hold, Commit(Status.COMPLETED), LATER - timedelta(minutes=1)
        )
    assert isinstance(stores.records.claim(again(first, job_id="a", reopens=first.reopens), LATER), Ended)
    assert stores.records.view(first.record).earlier == ("a", "b", "c")


def test_the_names_that_are_kept_are_the_latest(stores: Stores) -> None:
    first = named("0")
    done(stores, first)
    for number in range(1, NAMES_KEPT + 3):
        then = LATER + number * timedelta(hours=1)
        next_ = again(first, job_id=str(number), reopens=then)
        stores.records.commit(granted(stores, next_, then).hold, Commit(Status.COMPLETED), then)
    assert stores.records.view(first.record).earlier == tuple(str(number) for number in range(2, NAMES_KEPT + 2))


def test_a_message_without_a_name_of_its_own_begins_nothing_anew(stores: Stores) -> None:
    first = named("a")
    done(stores, first)
    assert isinstance(stores.records.claim(again(first, job_id=None, reopens=LATER), LATER), Ended)


def test_a_key_that_is_unique_for_ever_begins_nothing_anew(stores: Stores) -> None:
    first = claim(job_id="a")
    done(stores, first)
    assert isinstance(stores.records.claim(again(first, job_id="b"), LATER), Ended)


def test_while_the_job_is_active_another_message_waits_and_another_payload_is_refused(stores: Stores) -> None:
    first = named("a")
    granted(stores, first)
    assert isinstance(stores.records.claim(again(first, job_id="b", reopens=START), START), HeldByOther)
    other = again(first, job_id="b", reopens=START, fingerprint="1:bbbb")
    assert stores.records.claim(other, START) == KeyReused()


def test_a_dead_letter_does_not_keep_its_key_for_itself(stores: Stores) -> None:
    first = named("a")
    stores.records.bury(granted(stores, first).hold, 1, FAILURE, ENDED)
    assert isinstance(stores.records.claim(again(first, job_id="b", reopens=LATER), LATER), Granted)


def test_what_is_unknown_keeps_its_key_until_it_is_settled(stores: Stores) -> None:
    first = named("a")
    stores.records.commit(granted(stores, first).hold, Commit(Status.UNKNOWN, failure=FAILURE), ENDED)
    assert isinstance(stores.records.claim(again(first, job_id="b", reopens=LATER), LATER), Ended)


def test_of_two_messages_that_begin_a_key_anew_one_does(stores: Stores) -> None:
    first = named("a")
    done(stores, first)
    seen = stores.records.view(first.record)
    second, third = (again(first, job_id=name, reopens=LATER) for name in "bc")
    assert decide(seen, second, LATER) is decide(seen, third, LATER) is Step.RESET
    granted(stores, second, LATER)
    assert isinstance(stores.records.claim(third, LATER), HeldByOther)


# What the front door does with the requests of one key.


def generation(first: Acceptance, number: int, **changes: Any) -> Acceptance:
    record = record_id("user-1", "note", first.idempotency_key, number)
    return asked(first.idempotency_key, base=first.record, generation=number, record=record, **changes)


def ended(doors: Doors, acceptance: Acceptance) -> None:
    made = doors.records.claim(replace(claim_of(acceptance), accepted=True), START)
    assert isinstance(made, Granted)
    doors.records.commit(made.hold, Commit(Status.COMPLETED), START)


def first_of(doors: Doors) -> Acceptance:
    made = asked()
    first = replace(made, base=made.record)
    assert isinstance(doors.accepts.accept(first, START), Accepted)
    return first


def test_each_generation_has_a_record_of_its_own(doors: Doors) -> None:
    first = first_of(doors)
    assert doors.accepts.generation(first.record) == 0
    ended(doors, first)
    second = generation(first, 1, fingerprint="1:bbbb")
    assert isinstance(doors.accepts.accept(second, START), Accepted)
    assert doors.accepts.generation(first.record) == 1
    assert doors.records.view(first.record).status is Status.COMPLETED
    assert doors.records.view(second.record).status is Status.ACCEPTED
    assert second.posting in doors.postings()


def test_of_many_requests_for_the_next_generation_one_is_accepted(doors: Doors) -> None:
    first = first_of(doors)
    ended(doors, first)
    requests = [generation(first, 1) for _ in range(20)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda request: doors.accepts.accept(request, START), requests))
    assert sorted(type(answer).__name__ for answer in answers) == ["Accepted"] + ["Replayed"] * 19
    assert len([posting for posting in doors.postings() if posting in [each.posting for each in requests]]) == 1


def test_a_request_whose_reply_was_lost_finds_its_generation(doors: Doors) -> None:
    first = first_of(doors)
    second = generation(first, 1)
    assert isinstance(doors.accepts.accept(second, START), Accepted)
    assert isinstance(doors.accepts.accept(second, START), Accepted)


def test_an_earlier_generation_never_comes_back(doors: Doors) -> None:
    first = first_of(doors)
    ended(doors, first)
    second = generation(first, 1)
    doors.accepts.accept(second, START)
    expired = START + RETENTION
    assert doors.accepts.accept(generation(first, 0), expired) == Overtaken()
    assert isinstance(doors.accepts.accept(generation(first, 1), expired), Replayed)  # active, so it never expires


def test_a_generation_that_has_expired_is_begun_once_more(doors: Doors) -> None:
    first = first_of(doors)
    ended(doors, first)
    second = generation(first, 1)
    doors.accepts.accept(second, START)
    ended(doors, second)
    assert isinstance(doors.accepts.accept(generation(first, 1), START + RETENTION), Accepted)


def test_the_latest_generation_is_known_for_as_long_as_its_job_may_wait_and_be_remembered(doors: Doors) -> None:
    first = first_of(doors)
    if isinstance(doors.accepts, MemoryDatabase):
        return  # which forgets nothing
    item = doors.accepts.client.get_item(
        TableName=doors.accepts.jobs_table, Key={"id": {"S": f"latest/{first.record}"}}
    )
    assert int(item["Item"]["ttl"]["N"]) >= (START + LONGEST_SCHEDULE + RETENTION).timestamp()


def test_a_generation_with_another_payload_is_told_with_what_is_there(doors: Doors) -> None:
    first = first_of(doors)
    answer = doors.accepts.accept(generation(first, 0, fingerprint="1:bbbb"), START)
    assert answer == OtherPayload(doors.records.view(first.record))


# What waits for its time.


def test_an_accepted_job_with_run_at_is_not_claimed_before(doors: Doors) -> None:
    later = asked(run_at=LATER)
    doors.accepts.accept(later, START)
    assert doors.records.view(later.record).not_before == LATER
    made = replace(claim_of(later), accepted=True, until=LATER + timedelta(hours=1))
    assert not isinstance(doors.records.claim(made, START), Granted)
    assert isinstance(doors.records.claim(made, LATER), Granted)


@pytest.mark.parametrize("ahead", [timedelta(hours=1), timedelta(days=200)])
def test_a_cancelled_job_is_remembered_until_its_message_has_come(doors: Doors, ahead: timedelta) -> None:
    later = asked(run_at=START + ahead)
    doors.accepts.accept(later, START)
    assert doors.accepts.cancel(later.record, "user-2", START) is None
    cancelled = doors.accepts.cancel(later.record, "user-1", START)
    assert (cancelled.status, cancelled.not_before) == (Status.CANCELLED, None)
    assert cancelled.expires == START + ahead + RETENTION
    assert doors.accepts.cancel(later.record, "user-1", START) == cancelled
    made = replace(claim_of(later), accepted=True)
    assert isinstance(doors.records.claim(made, START + ahead), Ended)
