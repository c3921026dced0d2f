"""G10: a job that has not ended and whose message is gone is found, sent anew, and in the end visible as dead-lettered."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest

from shared.backends.dynamodb.unended import DynamoDBUnended
from shared.backends.memory.database import MemoryDatabase
from shared.claim import Granted
from shared.commit import Commit, Release
from shared.errors import ClaimLost
from shared.job_record import LOST_AFTER, JobView, Status
from shared.message import Message
from shared.outbox import SHARDS
from shared.wire.parsing import fingerprint
from tests.conformance.accepting import asked, claim_of
from tests.conformance.claims import FAILURE
from tests.world import START, Note

if TYPE_CHECKING:
    from datetime import datetime

    from shared.intake.acceptance import Acceptance
    from tests.conformance.accepting import Doors

LOST = START + LOST_AFTER
MINUTE = timedelta(minutes=1)


def store_of(doors: Doors) -> Any:
    if isinstance(doors.records, MemoryDatabase):
        return doors.records
    return DynamoDBUnended(doors.accepts.client, doors.accepts.jobs_table)


def lost(doors: Doors, now: datetime) -> dict[str, JobView]:
    store = store_of(doors)
    return {view.record: view for shard in range(SHARDS) for view in store.unended(shard, now)}


def accepted(doors: Doors, **changes: Any) -> Acceptance:
    acceptance = asked(**changes)
    doors.accepts.accept(acceptance, START)
    return acceptance


def message_of(acceptance: Acceptance) -> Message:
    return Message("note", 1, acceptance.idempotency_key, acceptance.payload, record=acceptance.record)


def held(doors: Doors, acceptance: Acceptance, **changes: Any) -> Granted:
    granted = doors.records.claim(replace(claim_of(acceptance), accepted=True, **changes), START)
    assert isinstance(granted, Granted)
    return granted


def test_an_accepted_job_is_lost_when_its_queue_would_have_forgotten_it(doors: Doors) -> None:
    mine = accepted(doors)
    assert mine.record not in lost(doors, LOST - MINUTE)
    view = lost(doors, LOST)[mine.record]
    assert view == doors.records.view(mine.record)
    assert (view.look_at, view.rescues, view.version, view.payload) == (LOST, 0, 1, mine.payload)


def test_a_job_for_later_is_lost_so_much_later(doors: Doors) -> None:
    ahead = timedelta(days=30)
    mine = accepted(doors, run_at=START + ahead)
    assert mine.record not in lost(doors, LOST + ahead - MINUTE)
    assert lost(doors, LOST + ahead)[mine.record].run_at == START + ahead


@pytest.mark.parametrize("zone", [-12, 14])
def test_a_job_for_later_is_lost_at_the_same_moment_in_every_zone(doors: Doors, zone: int) -> None:
    ahead = timedelta(days=30)
    mine = accepted(doors, run_at=(START + ahead).astimezone(timezone(timedelta(hours=zone))))
    assert mine.record not in lost(doors, LOST + ahead - MINUTE)
    assert mine.record in lost(doors, LOST + ahead)


def test_a_job_is_sent_anew_under_the_fingerprint_that_it_was_accepted_with(doors: Doors) -> None:
    exact = START + timedelta(microseconds=123456)
    message = Message("note", 1, "k", '{"thing":"a"}', run_at=exact)
    mine = accepted(doors, run_at=exact, fingerprint=fingerprint(message, Note(thing="a")))
    view = lost(doors, LOST + MINUTE)[mine.record]
    assert fingerprint(replace(message, run_at=view.run_at), Note(thing="a")) == view.fingerprint


def test_a_replayed_job_of_a_client_is_watched_while_its_attempt_runs(doors: Doors) -> None:
    mine = accepted(doors)
    doors.records.bury(held(doors, mine).hold, 1, FAILURE, START)
    held(doors, mine, token="replayed", death=1)  # and dies there, and its message is lost
    assert mine.record not in lost(doors, LOST - MINUTE)
    assert lost(doors, LOST)[mine.record].death == 1


def test_a_job_that_was_given_back_is_lost_so_long_after_it_may_run_again(doors: Doors) -> None:
    mine = accepted(doors)
    wait = timedelta(hours=6)
    doors.records.release(held(doors, mine).hold, Release(START + wait, FAILURE), START)
    assert mine.record not in lost(doors, LOST + wait - MINUTE)
    assert mine.record in lost(doors, LOST + wait)


@pytest.mark.parametrize("status", [Status.COMPLETED, Status.FAILED, Status.UNKNOWN])
def test_what_has_ended_is_not_lost(doors: Doors, status: Status) -> None:
    mine = accepted(doors)
    doors.records.commit(held(doors, mine).hold, Commit(status), START)
    assert mine.record not in lost(doors, LOST + timedelta(days=9))


def test_what_is_cancelled_or_dead_lettered_is_not_lost(doors: Doors) -> None:
    cancelled, buried = accepted(doors), accepted(doors)
    doors.accepts.cancel(cancelled.record, "user-1", START)
    doors.records.bury(held(doors, buried).hold, 1, FAILURE, START)
    assert not {cancelled.record, buried.record} & lost(doors, LOST + timedelta(days=9)).keys()


def test_what_was_sent_anew_is_lost_again_later(doors: Doors) -> None:
    mine, store = accepted(doors), store_of(doors)
    seen = lost(doors, LOST)[mine.record]
    store.note_rescue(seen, LOST + LOST_AFTER, LOST)
    assert mine.record not in lost(doors, LOST + MINUTE)
    assert lost(doors, LOST + LOST_AFTER)[mine.record].rescues == 1
    with pytest.raises(ClaimLost):  # another sweep saw it as it was
        store.note_rescue(seen, LOST + 2 * LOST_AFTER, LOST)


def test_what_is_given_up_is_dead_lettered_and_its_old_copies_are_stale(doors: Doors) -> None:
    mine, store = accepted(doors), store_of(doors)
    seen = lost(doors, LOST)[mine.record]
    store.give_up(seen, FAILURE, LOST)
    view = doors.records.view(mine.record)
    assert (view.status, view.death, view.last_failure, view.ended_at) == (Status.DEAD_LETTERED, 1, FAILURE, LOST)
    assert view.payload == mine.payload  # it may be sent anew by hand
    assert mine.record not in lost(doors, LOST + timedelta(days=9))
    late = replace(claim_of(mine), accepted=True, until=LOST + MINUTE)
    assert not isinstance(doors.records.claim(late, LOST), Granted)
    assert isinstance(doors.records.claim(replace(late, death=1), LOST), Granted)


def test_a_job_that_was_given_up_and_is_replayed_may_be_rescued_as_often_again(doors: Doors) -> None:
    mine, store = accepted(doors), store_of(doors)
    store.note_rescue(lost(doors, LOST)[mine.record], LOST, LOST)
    store.give_up(lost(doors, LOST)[mine.record], FAILURE, LOST)
    held(doors, mine, token="replayed", death=1)
    assert doors.records.view(mine.record).rescues == 0


@pytest.mark.parametrize("act", ["note_rescue", "give_up"])
def test_what_an_attempt_holds_is_left_alone(doors: Doors, act: str) -> None:
    mine, store = accepted(doors), store_of(doors)
    seen = lost(doors, LOST)[mine.record]
    held(doors, mine, until=LOST)
    with pytest.raises(ClaimLost):
        getattr(store, act)(seen, LOST + LOST_AFTER if act == "note_rescue" else FAILURE, LOST)
    store.note_rescue(seen, LOST + LOST_AFTER, LOST + MINUTE)  # its deadline has passed: it died there


def test_a_job_from_the_queue_is_watched_once_it_was_given_back(doors: Doors) -> None:
    acceptance = asked()
    claim = replace(claim_of(acceptance), run_at=START, job_id="j", trace="t")
    granted = doors.records.claim(claim, START)
    assert isinstance(granted, Granted)
    doors.records.release(granted.hold, Release(START), START)
    view = lost(doors, LOST)[acceptance.record]
    assert (view.names["owner"], view.job_id, view.trace, view.run_at) == ("system", "j", "t", START)
    assert json.loads(view.payload or "") == {"thing": "a"}


def test_out_06_a_job_whose_message_can_never_be_sent_is_dead_lettered_if_it_never_began(doors: Doors) -> None:
    mine, begun, store = accepted(doors), accepted(doors), store_of(doors)
    held(doors, begun)
    for _ in range(2):  # the relay may die in between, and say it again
        store.bury_unbegun(message_of(mine), FAILURE, LOST)
        store.bury_unbegun(message_of(begun), FAILURE, LOST)
        store.bury_unbegun(replace(message_of(mine), record="f" * 64), FAILURE, LOST)
    view = doors.records.view(mine.record)
    assert (view.status, view.death, view.last_failure, view.look_at) == (Status.DEAD_LETTERED, 1, FAILURE, None)
    assert view.payload == mine.payload
    assert doors.records.view(begun.record).status is Status.RUNNING
    assert doors.records.view("f" * 64) is None


def test_a_message_that_is_not_the_jobs_own_ends_it_not_although_it_can_never_be_sent(doors: Doors) -> None:
    mine, store = accepted(doors), store_of(doors)
    for changes in ({"payload": '{"thing":"b"}'}, {"idempotency_key": "other"}, {"job_type": "other"}):
        store.bury_unbegun(replace(message_of(mine), **changes), FAILURE, LOST)  # type: ignore[arg-type]
    assert doors.records.view(mine.record).status is Status.ACCEPTED


class Lagging:
    """A table whose index shows three jobs that look otherwise by now."""

    def query(self, **_: Any) -> dict[str, Any]:
        return {"Items": [{"id": {"S": name}} for name in ("gone", "ended", "given-back")]}

    def get_item(self, *, Key: dict[str, Any], ConsistentRead: bool, **_: Any) -> dict[str, Any]:  # noqa: N803 - as boto3 spells it
        assert ConsistentRead
        name = Key["id"]["S"]
        if name == "gone":
            return {}
        later = {"look_at": {"S": (LOST + MINUTE).isoformat()}} if name == "given-back" else {}
        return {"Item": {"id": {"S": name}, "status": {"S": "retrying"}, **later}}


def test_what_an_index_still_shows_is_looked_at_again() -> None:
    assert list(DynamoDBUnended(Lagging(), "jobs").unended(0, LOST)) == []
