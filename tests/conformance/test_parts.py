"""What every store promises of jobs that are split: parts are accepted whole, ends are counted once, a parent is woken once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from shared.backends.dynamodb.unended import DynamoDBUnended
from shared.backends.memory.database import MemoryDatabase
from shared.claim import Ended as HasEnded
from shared.claim import Granted, TooEarly
from shared.commit import Checkpoint, Commit, Release
from shared.errors import CancelAsked, ClaimLost, Conflict
from shared.job_record import RETENTION, Hold, JobView, Status
from shared.message import Message
from shared.outbox import Posting
from shared.parts import Ended, Part, PartState, Place, Split, Tally
from tests.conformance.claims import FAILURE, SOON, again, claim, fresh, granted
from tests.world import START, FakeClock

if TYPE_CHECKING:
    from tests.aws import Database

LATER = START + timedelta(hours=1)


@dataclass
class Stores:
    """One database, as a job's attempt, its parts and whoever counts them see it."""

    records: Any
    parts: Any
    outbox: Any
    accepts: Any
    unended: Any
    clock: FakeClock


@pytest.fixture(params=["memory", "moto"])
def stores(request: pytest.FixtureRequest) -> Stores:
    clock = FakeClock()
    if request.param == "memory":
        database = MemoryDatabase(clock)
        return Stores(database, database, database, database, database, clock)
    moto: Database = request.getfixturevalue("moto_database")
    return Stores(
        moto.records(clock),
        moto.parts(clock),
        moto.outbox,
        moto.acceptances(clock),
        DynamoDBUnended(moto.client, moto.jobs_table),
        clock,
    )


@dataclass
class Family:
    """A parent that is held, and splits."""

    stores: Stores
    hold: Hold
    view: JobView
    split: Split

    @classmethod
    def begun(cls, stores: Stores, **more: Any) -> Family:
        asked = claim(f"parent-{next(fresh)}", **more)
        answer = granted(stores, asked)  # type: ignore[arg-type]
        return cls(stores, answer.hold, answer.view, Split(asked.token))

    def part(self, number: int) -> Part:
        key = self.split.key(number)
        record = self.split.record("part", number)
        place = Place(self.view.record, self.split.block(self.split.blocks), number)
        posting = Posting(f"posting/{key}", "notes", "{}")
        return Part(record, "system", "part", key, "1:a", '{"n":1}', 1, f"token-{next(fresh)}", posting, place)

    def add(self, count: int) -> None:
        parts = tuple(self.part(self.split.parts + each) for each in range(count))
        after = replace(self.split, blocks=self.split.blocks + 1, parts=self.split.parts + count)
        self.stores.records.checkpoint(self.hold, Checkpoint(after.blocks, "{}", parts=parts, split=after), START)
        self.split = after

    def wait(self) -> JobView:
        self.stores.parts.wait(self.seen, START + SOON, START)
        return self.seen

    @property
    def seen(self) -> JobView:
        view: JobView = self.stores.records.view(self.view.record)
        return view

    def ended(self, number: int, state: PartState) -> Ended:
        block = next(b for b in range(self.split.blocks) if number in self._numbers(b))
        return Ended(Place(self.view.record, self.split.block(block), number), state)

    def _numbers(self, block: int) -> range:
        return range(block * 2, block * 2 + 2)  # the tests below add two at a time where they count


def test_a_checkpoint_accepts_its_parts_and_their_messages(stores: Stores) -> None:
    family = Family.begun(stores)
    family.add(2)
    family.add(1)
    assert family.seen.split == Split(family.split.name, 2, 3)
    views = {view.place.number: view for view in stores.parts.all_parts(family.split)}
    assert sorted(views) == [0, 1, 2]
    assert {view.status for view in views.values()} == {Status.ACCEPTED}
    assert views[2].place == Place(family.view.record, family.split.block(1), 2)
    assert (views[0].payload, views[0].names["owner"], views[0].attempts) == ('{"n":1}', "system", 0)
    assert views[0].look_at is not None
    assert stores.parts.tally(family.split) == Tally(3)
    assert {f"posting/{family.split.key(number)}" for number in range(3)} <= set(_posted(stores))
    asked = claim(family.split.key(1), record=views[1].record, job_type="part", fingerprint="1:a", accepted=True)
    answer = granted(stores, asked)  # type: ignore[arg-type]
    assert (answer.attempt, answer.begins, answer.view.place) == (1, True, views[1].place)


def test_forty_nine_parts_fit_into_one_checkpoint(stores: Stores) -> None:
    family = Family.begun(stores)
    family.add(49)
    assert len(list(stores.parts.all_parts(family.split))) == 49


def test_a_checkpoint_that_is_repeated_accepts_its_parts_once_and_one_of_a_zombie_none(stores: Stores) -> None:
    zombie = Family.begun(stores)
    parts = (zombie.part(0),)
    after = Split(zombie.split.name, 1, 1)
    checkpoint = Checkpoint(1, "{}", parts=parts, split=after)
    for _ in range(2):
        stores.records.checkpoint(zombie.hold, checkpoint, START)
    assert len(list(stores.parts.all_parts(after))) == 1
    later = zombie.view.claim_until + SOON  # type: ignore[operator]
    taken = granted(stores, again(claim(zombie.view.names["idempotency_key"]), until=later + SOON), later)  # type: ignore[arg-type]
    assert taken.view.split == after
    zombie.split = after
    with pytest.raises(ClaimLost):
        zombie.add(1)
    with pytest.raises(Conflict):  # whoever split it into the same parts has done so
        stores.records.checkpoint(taken.hold, Checkpoint(2, "{}", parts=parts, split=after), later)


def test_ends_are_counted_once_however_often_they_are_noted(stores: Stores) -> None:
    family = Family.begun(stores)
    family.add(2)
    family.add(2)
    ends = [
        family.ended(0, PartState.SUCCEEDED),
        family.ended(1, PartState.FAILED),
        family.ended(3, PartState.CANCELLED),
    ]
    for _ in range(2):
        stores.parts.note(ends)
    tally = stores.parts.tally(family.split)
    assert (tally.succeeded, tally.failed, tally.cancelled, tally.ended, tally.is_over) == (1, 1, 1, 3, False)
    assert [view.place.number for view in stores.parts.open_parts(family.split)] == [2]
    stores.parts.note([family.ended(2, PartState.DEAD_LETTERED)])
    assert stores.parts.tally(family.split).is_over
    stores.parts.note([family.ended(2, PartState.SUCCEEDED)])  # it was replayed
    after = stores.parts.tally(family.split)
    assert (after.succeeded, after.dead_lettered, after.ended) == (2, 0, 4)
    assert after.changes > tally.changes
    stores.parts.note([Ended(Place(family.view.record, "parts/gone/0", 1), PartState.FAILED)])  # its block has expired


def test_a_parent_shows_the_latest_tally_and_none_while_it_is_being_split(stores: Stores) -> None:
    family = Family.begun(stores)
    family.add(2)
    record, split = family.view.record, family.split
    stores.parts.tell(record, split, Tally(2, succeeded=1, changes=1))
    assert family.seen.tally is None
    family.wait()
    stores.parts.tell(record, split, Tally(2, succeeded=2, changes=2))
    stores.parts.tell(record, split, Tally(2, succeeded=1, changes=1))  # overtaken
    stores.parts.tell(record, Split("other", 1, 1), Tally(1, changes=9))  # of another life of the key
    assert family.seen.tally == Tally(2, succeeded=2, changes=2)


def test_a_parent_that_waits_is_held_by_nobody_and_spends_no_attempt(stores: Stores) -> None:
    family = Family.begun(stores)
    family.add(2)
    held = family.seen
    view = family.wait()
    assert (view.status, view.attempts, view.claim_until, view.look_at) == (Status.WAITING, 0, None, START + SOON)
    stores.parts.wait(held, START + SOON, START)  # the reply was lost
    copy = again(claim(view.names["idempotency_key"]))
    assert stores.records.claim(copy, START + timedelta(days=1)) == HasEnded(Status.WAITING)  # a copy of its message
    with pytest.raises(ClaimLost):
        stores.records.commit(family.hold, Commit(Status.COMPLETED), START)
    with pytest.raises(ClaimLost):
        stores.records.release(family.hold, Release(START), START)


def test_i15_a_zombie_does_not_wait(stores: Stores) -> None:
    family = Family.begun(stores)
    family.add(2)
    zombie = family.seen
    later = family.view.claim_until + SOON  # type: ignore[operator]
    granted(stores, again(claim(zombie.names["idempotency_key"]), until=later + SOON), later)  # type: ignore[arg-type]
    with pytest.raises(ClaimLost):
        stores.parts.wait(zombie, later, later)
    assert family.seen.status is Status.RUNNING


def test_a_parent_is_woken_once_with_its_message(stores: Stores) -> None:
    family = Family.begun(stores)
    family.add(2)
    running = family.seen
    posting = Posting(f"woken/{family.split.name}", "notes", "{}")
    with pytest.raises(ClaimLost):  # it does not wait yet
        stores.parts.wake(running, posting, START)
    assert posting.id not in _posted(stores)
    view = family.wait()
    stores.parts.wake(view, posting, START)
    for _ in range(2):
        with pytest.raises(ClaimLost):
            stores.parts.wake(view, posting, START)
    with pytest.raises(ClaimLost):
        stores.parts.look_again(view, LATER)
    assert _posted(stores).count(posting.id) == 1
    assert family.seen.status is Status.RETRYING
    woken = granted(stores, again(claim(view.names["idempotency_key"])), START + SOON)  # type: ignore[arg-type]
    assert (woken.attempt, woken.view.split, woken.begins) == (1, family.split, False)


def test_a_parent_that_waits_is_looked_at_again(stores: Stores) -> None:
    family = Family.begun(stores)
    family.add(2)
    view = family.wait()
    stores.parts.look_again(view, LATER)
    assert family.seen.look_at == LATER
    found = [each for shard in range(8) for each in stores.unended.unended(shard, LATER)]
    assert [each.status for each in found if each.record == view.record] == [Status.WAITING]
    stores.unended.give_up(family.seen, FAILURE, LATER)  # nobody can wake it
    assert family.seen.status is Status.DEAD_LETTERED


def test_r1_6_a_job_of_many_steps_is_asked_to_end_and_writes_no_step_more(stores: Stores) -> None:
    family = Family.begun(stores, owner="ann")
    assert stores.accepts.cancel(family.view.record, "ann", START).cancelling is False  # it has no steps
    family.add(1)
    assert stores.accepts.cancel(family.view.record, "bob", START) is None
    for _ in range(2):
        view = stores.accepts.cancel(family.view.record, "ann", START)
        assert (view.status, view.cancelling) == (Status.RUNNING, True)
    split = family.split
    with pytest.raises(CancelAsked):
        family.add(1)
    assert family.seen.split == Split(split.name, 2, 2)  # what the step did outside is done: it is written
    assert len(list(stores.parts.all_parts(Split(split.name, 2, 2)))) == 2
    stores.records.commit(family.hold, Commit(Status.CANCELLED), START)
    assert family.seen.status is Status.CANCELLED
    assert stores.accepts.cancel(family.view.record, "ann", START).status is Status.CANCELLED


def test_a_parent_that_waits_can_be_asked_to_end_too(stores: Stores) -> None:
    family = Family.begun(stores, owner="ann")
    family.add(1)
    family.wait()
    assert stores.accepts.cancel(family.view.record, "ann", START).cancelling
    assert family.seen.status is Status.WAITING


def test_another_job_of_a_key_is_not_split_yet_and_not_cancelled(stores: Stores) -> None:
    family = Family.begun(stores, owner="ann", reopens=START, job_id="first")
    family.add(1)
    stores.parts.tell(family.view.record, family.split, Tally(1))
    stores.accepts.cancel(family.view.record, "ann", START)
    stores.records.commit(family.hold, Commit(Status.COMPLETED), START)
    key = family.view.names["idempotency_key"]
    anew = granted(stores, again(claim(key), reopens=LATER, job_id="second"), LATER)  # type: ignore[arg-type]
    assert (anew.view.split, anew.view.tally, anew.view.cancelling) == (None, None, False)


def test_a_part_that_is_replayed_is_a_part_still(stores: Stores) -> None:
    family = Family.begun(stores)
    family.add(1)
    (view,) = stores.parts.all_parts(family.split)
    asked = claim(family.split.key(0), record=view.record, job_type="part", fingerprint="1:a", accepted=True)
    hold = granted(stores, asked).hold  # type: ignore[arg-type]
    stores.records.bury(hold, 1, FAILURE, START)
    answer = stores.records.claim(replace(asked, death=1, token="again"), LATER)
    assert isinstance(answer, Granted)
    assert answer.view.place == view.place
    stores.records.release(answer.hold, Release(LATER + SOON), LATER)
    assert isinstance(stores.records.claim(replace(asked, death=1, token="third"), LATER), TooEarly)


def _posted(stores: Stores) -> list[str]:
    if isinstance(stores.outbox, MemoryDatabase):
        return list(stores.outbox.outbox)
    items = stores.outbox.client.scan(TableName=stores.outbox.table, ConsistentRead=True)["Items"]
    return [item["id"]["S"] for item in items]


def test_a_parents_end_tells_what_it_counted(stores: Stores) -> None:
    family = Family.begun(stores)
    family.add(2)
    stores.records.commit(family.hold, Commit(Status.COMPLETED, tally=Tally(2, succeeded=2, changes=4)), START)
    assert family.seen.tally == Tally(2, succeeded=2, changes=4)
    stores.parts.tell(family.view.record, family.split, Tally(2, succeeded=1, changes=3))  # overtaken
    assert family.seen.tally == Tally(2, succeeded=2, changes=4)


def message_of(stores: Stores, family: Family, **changes: Any) -> Message:
    (view,) = stores.parts.all_parts(family.split)
    message = Message("part", 1, family.split.key(0), '{"n":1}', record=view.record)
    return replace(message, **changes)


def test_a_part_that_no_attempt_can_begin_has_ended_and_no_other_has(stores: Stores) -> None:
    family = Family.begun(stores)
    family.add(1)
    for changes in ({"payload": '{"n":2}'}, {"idempotency_key": "other"}, {"job_type": "other"}, {"record": "a" * 64}):
        stores.records.bury_unbegun(message_of(stores, family, **changes), FAILURE, START)
    (view,) = stores.parts.all_parts(family.split)
    assert view.status is Status.ACCEPTED
    for _ in range(2):
        stores.records.bury_unbegun(message_of(stores, family), FAILURE, START)
    (view,) = stores.parts.all_parts(family.split)
    assert (view.status, view.death, view.last_failure, view.look_at) == (Status.DEAD_LETTERED, 1, FAILURE, None)


def test_a_part_that_has_begun_is_its_attempts(stores: Stores) -> None:
    family = Family.begun(stores)
    family.add(1)
    (view,) = stores.parts.all_parts(family.split)
    asked = claim(family.split.key(0), record=view.record, job_type="part", fingerprint="1:a", accepted=True)
    hold = granted(stores, asked).hold  # type: ignore[arg-type]
    stores.records.bury_unbegun(message_of(stores, family), FAILURE, START)
    stores.records.release(hold, Release(START, gives_attempt_back=True), START)
    stores.records.bury_unbegun(message_of(stores, family), FAILURE, START)
    assert stores.records.view(view.record).status is Status.RETRYING


def test_i7_a_parent_that_has_expired_is_absent_whether_it_is_still_there_or_not(stores: Stores) -> None:
    family = Family.begun(stores)
    stores.records.commit(family.hold, Commit(Status.COMPLETED), START)
    stores.clock.moment = START + RETENTION - timedelta(seconds=1)
    assert stores.parts.view(family.view.record) is not None
    stores.clock.moment = START + RETENTION
    assert stores.parts.view(family.view.record) is None
