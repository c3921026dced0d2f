"""What every outbox promises: the twin in memory, and the table as moto has it."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from shared.backends.memory_database import MemoryDatabase
from shared.backends.outbox import DynamoDBOutbox, read_posting
from shared.outbox import Posting
from tests.world import START, FakeClock

if TYPE_CHECKING:
    from tests.aws import Database

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
        key = {"id": {"S": name}}
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
    whole = posting(delay=timedelta(seconds=30), group="g", attributes={"trace": "abc"})
    shelf.store.post(whole, START)
    assert shelf.look(whole.id) == (whole, None, None)


def test_a_name_is_posted_once(shelf: Shelf) -> None:
    first = posting()
    shelf.store.post(first, START)
    shelf.store.mark_sent(first.id, START)
    shelf.store.post(posting(id=first.id, body='{"other":1}'), LATER)
    assert shelf.look(first.id) == (first, START.isoformat(), None)


def test_when_it_was_sent_is_noted_once(shelf: Shelf) -> None:
    sent = posting()
    shelf.store.post(sent, START)
    shelf.store.mark_sent(sent.id, START)
    shelf.store.mark_sent(sent.id, LATER)
    assert shelf.look(sent.id) == (sent, START.isoformat(), None)


def test_why_it_is_parked_is_noted_once(shelf: Shelf) -> None:
    parked = posting()
    shelf.store.post(parked, START)
    shelf.store.park(parked.id, "first")
    shelf.store.park(parked.id, "second")
    assert shelf.look(parked.id) == (parked, None, "first")


def test_what_has_expired_is_neither_marked_nor_parked(shelf: Shelf) -> None:
    gone = posting()
    shelf.store.mark_sent(gone.id, START)
    shelf.store.park(gone.id, "why")
    assert shelf.look(gone.id) is None
    shelf.store.post(gone, START)
    assert shelf.look(gone.id) == (gone, None, None)
