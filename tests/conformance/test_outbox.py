"""What every outbox promises: the twin in memory, and the table as moto has it."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from shared.backends.dynamodb.outbox import DynamoDBOutbox, read_posting, write_posting
from shared.backends.memory.database import MemoryDatabase
from shared.commit import Commit
from shared.job_record import Hold, Status
from shared.outbox import SHARDS, Overdue, Posting
from tests.conformance.claims import claim
from tests.world import START, FakeClock

if TYPE_CHECKING:
    from datetime import datetime

    from tests.aws import Database
    from tests.conformance.conftest import Stores

fresh = itertools.count()
LATER = START + timedelta(hours=1)


class Shelf(Protocol):
    """An outbox, and what lies in it: the posting, when it was sent, why it is parked."""

    store: Any

    def look(self, name: str) -> tuple[Posting, str | None, str | None] | None: ...


@dataclass
class Memory:
    """The twin."""

    store: MemoryDatabase

    def look(self, name: str) -> tuple[Posting, str | None, str | None] | None:
        posting = self.store.outbox.get(name)
        if posting is None:
            return None
        sent = self.store.sent.get(name)
        return posting, None if sent is None else sent.isoformat(), self.store.parked.get(name)


@dataclass
class Moto:
    """The table."""

    store: DynamoDBOutbox

    def look(self, name: str) -> tuple[Posting, str | None, str | None] | None:
        key = {"lane": {"S": name}, "id": {"S": name}}
        item = self.store.client.get_item(TableName=self.store.table, Key=key, ConsistentRead=True).get("Item")
        if item is None:
            return None
        return read_posting(item), item.get("sent_at", {}).get("S"), item.get("parked", {}).get("S")


@pytest.fixture(params=["memory", "moto"])
def shelf(request: pytest.FixtureRequest) -> Shelf:
    if request.param == "memory":
        return Memory(MemoryDatabase(FakeClock()))
    moto: Database = request.getfixturevalue("moto_database")
    return Moto(DynamoDBOutbox(moto.client, moto.outbox_table))


def posting(**changes: Any) -> Posting:
    given = {"id": f"p{next(fresh)}", "worker": "notes", "body": "{}", **changes}
    return Posting(**given)


def test_what_is_posted_lies_there_whole(shelf: Shelf) -> None:
    whole = posting(delay=timedelta(seconds=30), group="g", attributes={"trace": "abc"}, tenant="shop-1")
    shelf.store.post(whole, START)
    assert shelf.look(whole.id) == (whole, None, None)


def test_a_name_is_posted_once(shelf: Shelf) -> None:
    first = posting()
    shelf.store.post(first, START)
    shelf.store.mark_sent(first, START)
    shelf.store.post(posting(id=first.id, body='{"other":1}'), LATER)
    assert shelf.look(first.id) == (first, START.isoformat(), None)


def test_when_it_was_sent_is_noted_once(shelf: Shelf) -> None:
    sent = posting()
    shelf.store.post(sent, START)
    shelf.store.mark_sent(sent, START)
    shelf.store.mark_sent(sent, LATER)
    assert shelf.look(sent.id) == (sent, START.isoformat(), None)


def test_why_it_is_parked_is_noted_once(shelf: Shelf) -> None:
    parked = posting()
    shelf.store.post(parked, START)
    shelf.store.park(parked, "first")
    shelf.store.park(parked, "second")
    assert shelf.look(parked.id) == (parked, None, "first")


def test_what_has_expired_is_neither_marked_nor_parked(shelf: Shelf) -> None:
    gone = posting()
    shelf.store.mark_sent(gone, START)
    shelf.store.park(gone, "why")
    assert shelf.look(gone.id) is None
    shelf.store.post(gone, START)
    assert shelf.look(gone.id) == (gone, None, None)


def overdue(shelf: Shelf, before: datetime, now: datetime) -> dict[str, Overdue]:
    found = [each for shard in range(SHARDS) for each in shelf.store.overdue(shard, before, now)]
    assert len({each.posting.id for each in found}) == len(found)
    return {each.posting.id: each for each in found}


def test_i10_what_waits_is_found_after_its_time_whole_and_with_what_is_left_of_its_delay(shelf: Shelf) -> None:
    waiting = posting(delay=timedelta(seconds=600), group="g", attributes={"trace": "abc"}, tenant="shop-1")
    shelf.store.post(waiting, START)
    assert waiting.id not in overdue(shelf, START, START)
    later = START + timedelta(seconds=121.5)
    found = overdue(shelf, START + timedelta(seconds=1), later)[waiting.id]
    assert found == Overdue(replace(waiting, delay=timedelta(seconds=479)), START)
    much_later = START + timedelta(days=2)
    assert overdue(shelf, much_later, much_later)[waiting.id].posting.delay == timedelta(0)


def test_what_is_sent_or_parked_waits_no_more(shelf: Shelf) -> None:
    sent, parked, waiting = posting(), posting(), posting()
    for each in (sent, parked, waiting):
        shelf.store.post(each, START)
    shelf.store.mark_sent(sent, START)
    shelf.store.park(parked, "why")
    found = overdue(shelf, LATER, LATER)
    assert waiting.id in found
    assert not {sent.id, parked.id} & set(found)


def test_the_oldest_of_a_shard_comes_first(shelf: Shelf) -> None:
    posted = [posting() for _ in range(3 * SHARDS)]
    for age, each in enumerate(reversed(posted)):
        shelf.store.post(each, START + timedelta(seconds=age))
    for shard in range(SHARDS):
        times = [each.since for each in shelf.store.overdue(shard, LATER, LATER)]
        assert times == sorted(times)


def test_a_message_of_a_commit_waits_from_the_commit(stores: Stores) -> None:
    made = claim()
    stores.records.claim(made, START)
    mine = posting()
    stores.records.commit(Hold(made.record, made.token), Commit(Status.COMPLETED, postings=(mine,)), START)
    records: Any = stores.records
    if isinstance(stores.items, MemoryDatabase):
        shelf: Shelf = Memory(records)
    else:
        shelf = Moto(DynamoDBOutbox(records.layer.client, records.layer.outbox_table))
    assert overdue(shelf, LATER, LATER)[mine.id].since == START


def lane(shelf: Shelf, group: str) -> list[Posting]:
    return list(shelf.store.lane(posting(group=group, ordered=True).lane))


def test_i12_what_waits_in_a_lane_is_found_in_the_order_of_its_commits(shelf: Shelf) -> None:
    group, other = f"g{next(fresh)}", f"g{next(fresh)}"
    seconds = (3, 0, 0.5, 2, 1)
    posted = {second: posting(group=group, ordered=True) for second in seconds}
    for second, each in posted.items():
        shelf.store.post(each, START + timedelta(seconds=second))
    shelf.store.post(posting(group=other, ordered=True), START)
    shelf.store.post(posting(group=group), START)  # in no order
    assert lane(shelf, group) == [posted[second] for second in sorted(seconds)]
    shelf.store.mark_sent(posted[1], LATER)
    shelf.store.park(posted[0], "why")
    assert lane(shelf, group) == [posted[second] for second in (0.5, 2, 3)]


def test_i12_messages_of_one_commit_are_in_the_order_in_which_it_enqueued_them(stores: Stores) -> None:
    made, group = claim(), f"g{next(fresh)}"
    stores.records.claim(made, START)
    mine = tuple(posting(id=f"{-number}-{next(fresh)}", group=group, ordered=True) for number in range(12))
    stores.records.commit(Hold(made.record, made.token), Commit(Status.COMPLETED, postings=mine), START)
    records: Any = stores.records
    store = (
        records
        if isinstance(stores.items, MemoryDatabase)
        else DynamoDBOutbox(records.layer.client, records.layer.outbox_table)
    )
    assert list(store.lane(mine[0].lane)) == list(mine)


class Lagging:
    """A table whose indexes show an item that was sent, and one that is gone."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    def query(self, **asked: Any) -> dict[str, Any]:
        self.asked.append(asked)
        return {"Items": [{"lane": {"S": "notes/g"}, "id": {"S": name}} for name in ("sent", "gone")]}

    def get_item(self, *, Key: dict[str, Any], **asked: Any) -> dict[str, Any]:  # noqa: N803 - as boto3 spells it
        self.asked.append(asked)
        if Key["id"]["S"] == "gone":
            return {}
        item = write_posting(posting(group="g", ordered=True), START)
        return {"Item": {name: value for name, value in item.items() if name not in {"pending", "place"}}}


def test_what_an_index_still_shows_is_looked_at_again() -> None:
    outbox = DynamoDBOutbox(Lagging(), "outbox")
    assert list(outbox.lane("notes/g")) == []
    assert all(asked["ConsistentRead"] for asked in outbox.client.asked)
    assert list(outbox.overdue(0, LATER, LATER)) == []


def test_what_is_sent_or_parked_leaves_the_index_of_lanes(moto_database: Database) -> None:
    outbox = moto_database.outbox
    sent, parked = (posting(group=f"g{next(fresh)}", ordered=True) for _ in range(2))
    for each in (sent, parked):
        outbox.post(each, START)
    outbox.mark_sent(sent, START)
    outbox.park(parked, "why")
    for each in (sent, parked):
        found = outbox.client.query(
            TableName=outbox.table,
            IndexName="lanes",
            KeyConditionExpression="lane = :lane",
            ExpressionAttributeValues={":lane": {"S": each.lane}},
        )
        assert found["Count"] == 0
