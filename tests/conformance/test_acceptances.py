"""What every store promises that accepts jobs for the front door: the twin in memory, and DynamoDB as moto has it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from shared.claim import Ended, Granted, NotAccepted
from shared.commit import Commit, Release
from shared.errors import Refused, Unavailable
from shared.intake.acceptance import Accepted, OtherPayload, Replayed
from shared.job_record import RETENTION, Status, operation_id, record_id
from tests.conformance.accepting import LATER, Doors, again, asked, claim_of
from tests.world import START, FakeClock

if TYPE_CHECKING:
    from tests.aws import Database


def test_i5_an_accepted_job_has_its_record_and_its_message(doors: Doors) -> None:
    first = asked()
    answer = doors.accepts.accept(first, START)
    assert isinstance(answer, Accepted)
    view = doors.records.view(first.record)
    assert view == answer.view
    assert (view.status, view.attempts, view.payload) == (Status.ACCEPTED, 0, first.payload)
    assert view.names == {
        "owner": "user-1",
        "job_type": "note",
        "idempotency_key": first.idempotency_key,
        "operation_id": operation_id(first.record),
    }
    assert first.posting in doors.postings()


def test_i2_the_same_request_again_is_the_same_job_and_no_second_message(doors: Doors) -> None:
    first, second = asked(), None
    doors.accepts.accept(first, START)
    second = again(first)
    answer = doors.accepts.accept(second, LATER)
    assert isinstance(answer, Replayed)
    assert answer.view == doors.records.view(first.record)
    postings = doors.postings()
    assert first.posting in postings
    assert second.posting not in postings


def test_out_05_a_request_whose_reply_was_lost_finds_that_it_was_accepted(doors: Doors) -> None:
    first = asked()
    doors.accepts.accept(first, START)
    assert isinstance(doors.accepts.accept(first, START), Accepted)
    assert doors.postings().count(first.posting) == 1


def test_i3_a_key_with_another_payload_writes_nothing(doors: Doors) -> None:
    first = asked()
    doors.accepts.accept(first, START)
    before = doors.records.view(first.record)
    other = again(first, fingerprint="1:bbbb", payload='{"thing":"b"}')
    assert doors.accepts.accept(other, START) == OtherPayload(before)
    assert doors.records.view(first.record) == before
    assert other.posting not in doors.postings()


def test_i6_two_owners_with_one_key_have_two_jobs(doors: Doors) -> None:
    first = asked()
    stranger = replace(again(first), owner="user-2", record=record_id("user-2", "note", first.idempotency_key))
    assert isinstance(doors.accepts.accept(first, START), Accepted)
    assert isinstance(doors.accepts.accept(stranger, START), Accepted)


def test_out_01_of_many_requests_at_once_one_is_accepted_and_all_get_its_answer(doors: Doors) -> None:
    first = asked()
    requests = [again(first) for _ in range(50)]
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda request: doors.accepts.accept(request, START), requests))
    assert sorted(type(answer).__name__ for answer in answers) == ["Accepted"] + ["Replayed"] * 49
    assert {answer.view.names["operation_id"] for answer in answers} == {operation_id(first.record)}
    mine = {request.posting.id for request in requests}
    assert len([posting for posting in doors.postings() if posting.id in mine]) == 1


def test_i7_an_expired_record_is_absent_and_its_key_begins_anew(doors: Doors) -> None:
    first = asked()
    doors.accepts.accept(first, START)
    granted = doors.records.claim(claim_of(first), START)
    assert isinstance(granted, Granted)
    doors.records.commit(granted.hold, Commit(Status.COMPLETED, '"done"'), START)
    exactly = START + RETENTION
    assert isinstance(doors.accepts.accept(again(first), exactly - timedelta(seconds=1)), Replayed)
    anew = again(first, fingerprint="1:cccc")
    assert isinstance(doors.accepts.accept(anew, exactly), Accepted)
    view = doors.records._read(first.record) if hasattr(doors.records, "_read") else doors.records.records[first.record]
    assert (view.status, view.result, view.expires) == (Status.ACCEPTED, None, None)


def test_an_accepted_job_is_claimed_like_one_that_came_by_message(doors: Doors) -> None:
    first = asked()
    doors.accepts.accept(first, START)
    granted = doors.records.claim(claim_of(first), START)
    assert isinstance(granted, Granted)
    assert granted.attempt == 1
    view = doors.records.view(first.record)
    assert (view.status, view.names["owner"]) == (Status.RUNNING, "user-1")


def test_a_message_that_names_a_record_is_claimed_only_where_the_front_door_accepted_it(doors: Doors) -> None:
    first = asked()
    named = replace(claim_of(first), accepted=True)
    assert doors.records.claim(named, START) == NotAccepted()  # nobody accepted it, and nothing is written
    assert doors.records.view(first.record) is None
    doors.accepts.accept(first, START)
    other = replace(named, idempotency_key="another")
    assert doors.records.claim(other, START) == NotAccepted()
    assert doors.records.claim(replace(named, job_type="other"), START) == NotAccepted()
    assert doors.records.view(first.record).attempts == 0
    assert isinstance(doors.records.claim(named, START), Granted)


def test_an_accepted_job_that_expired_is_not_begun_anew_by_its_old_message(doors: Doors) -> None:
    first = asked()
    doors.accepts.accept(first, START)
    named = replace(claim_of(first), accepted=True)
    granted = doors.records.claim(named, START)
    doors.records.commit(granted.hold, Commit(Status.COMPLETED), START)
    late = replace(named, token="late", until=START + RETENTION * 2)
    assert doors.records.claim(late, START + RETENTION) == NotAccepted()


def test_an_accepted_job_is_cancelled_once_and_for_good(doors: Doors) -> None:
    first = asked()
    doors.accepts.accept(first, START)
    cancelled = doors.accepts.cancel(first.record, "user-1", START)
    assert (cancelled.status, cancelled.payload, cancelled.expires) == (Status.CANCELLED, None, START + RETENTION)
    assert doors.accepts.cancel(first.record, "user-1", LATER) == cancelled
    answer = doors.records.claim(replace(claim_of(first), accepted=True), START)
    assert isinstance(answer, Ended)
    assert answer.status is Status.CANCELLED
    replayed = doors.accepts.accept(again(first), LATER)
    assert isinstance(replayed, Replayed)
    assert replayed.view.status is Status.CANCELLED


def test_what_an_attempt_holds_or_has_ended_is_not_cancelled(doors: Doors) -> None:
    first = asked()
    doors.accepts.accept(first, START)
    granted = doors.records.claim(claim_of(first), START)
    assert doors.accepts.cancel(first.record, "user-1", START).status is Status.RUNNING
    doors.records.commit(granted.hold, Commit(Status.COMPLETED, '"done"'), START)
    assert doors.accepts.cancel(first.record, "user-1", START).status is Status.COMPLETED
    assert doors.records.view(first.record).result == '"done"'


@pytest.mark.parametrize("given_back", [False, True])
def test_a_job_between_two_attempts_may_have_done_something_and_is_not_cancelled(
    doors: Doors, *, given_back: bool
) -> None:
    first = asked()
    doors.accepts.accept(first, START)
    granted = doors.records.claim(claim_of(first), START)
    doors.records.release(granted.hold, Release(LATER, gives_attempt_back=given_back), START)
    assert doors.accepts.cancel(first.record, "user-1", START).status is Status.RETRYING
    late = replace(claim_of(first), until=LATER + timedelta(hours=1))
    assert isinstance(doors.records.claim(late, LATER), Granted)


def test_i6_nobody_cancels_what_is_anothers_or_not_there(doors: Doors) -> None:
    first = asked()
    assert doors.accepts.cancel(first.record, "user-1", START) is None
    doors.accepts.accept(first, START)
    assert doors.accepts.cancel(first.record, "user-2", START) is None
    assert doors.records.view(first.record).status is Status.ACCEPTED


class Cancelled:
    """A client whose transactions are cancelled for the reasons given, one list after another, and then succeed."""

    def __init__(self, *reasons: list[str]) -> None:
        self.reasons = list(reasons)
        self.tried = 0

    def transact_write_items(self, **request: Any) -> None:
        self.tried += 1
        if self.reasons:
            codes = self.reasons.pop(0)
            raise ClientError(
                {
                    "Error": {"Code": "TransactionCanceledException"},
                    "CancellationReasons": [{"Code": code} for code in codes],
                },
                "TransactWriteItems",
            )


def test_out_08_a_cancelled_transaction_is_read_by_its_reasons(moto_database: Database) -> None:
    accepts = moto_database.acceptances(FakeClock())
    busy = Cancelled(["None", "TransactionConflict"], ["None", "TransactionConflict"])
    assert isinstance(replace(accepts, client=busy).accept(asked(), START), Accepted)
    assert busy.tried == 3
    throttled = Cancelled(*[["ThrottlingError", "None"]] * 20)
    with pytest.raises(Unavailable):
        replace(accepts, client=throttled).accept(asked(), START)
    assert throttled.tried == 4
    wrong = Cancelled(["ValidationError", "None"])
    with pytest.raises(Refused):
        replace(accepts, client=wrong).accept(asked(), START)
    assert wrong.tried == 1
