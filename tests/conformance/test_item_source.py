"""What every source of items to show promises."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from shared.backends.dynamodb.item_source import DynamoDBItemSource
from shared.backends.dynamodb.items import DynamoDBItems
from shared.backends.memory.database import MemoryDatabase
from shared.errors import Unavailable
from shared.item import Create, Stored
from shared.table import Table
from tests.aws import Database
from tests.world import FakeClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

THINGS = Table("things", key="id")
LINES = Table("lines", key="order", sort_key="line")
fresh = itertools.count()


class Source:
    """A source, and a way to put items where it reads."""

    def __init__(self, reads: Any, put: Callable[[Table, dict[str, Any], int, bool], None]) -> None:
        self.reads = reads
        self._put = put

    def put(self, table: Table, *, version: int = 1, deleted: bool = False, **item: Any) -> None:
        self._put(table, item, version, deleted)


@pytest.fixture(scope="module")
def tables(aws_endpoint: str) -> Iterator[Database]:
    database = Database.create(THINGS, LINES)
    yield database
    database.drop()


@pytest.fixture(params=["memory", "moto"])
def source(request: pytest.FixtureRequest) -> Source:
    clock = FakeClock()
    if request.param == "memory":
        memory = MemoryDatabase(clock)

        def keep(table: Table, item: dict[str, Any], version: int, deleted: bool) -> None:
            memory.items[table.name, tuple(item[name] for name in table.key_names)] = Stored(item, version, deleted)

        return Source(memory, keep)
    database: Database = request.getfixturevalue("tables")

    def write(table: Table, item: dict[str, Any], version: int, deleted: bool) -> None:
        key = tuple(item[name] for name in table.key_names)
        entry = database.items.entry(Create(table, key, item))["Update"]
        database.client.update_item(**entry)
        database.client.update_item(
            TableName=entry["TableName"],
            Key=entry["Key"],
            UpdateExpression="SET version = :version, deleted = :deleted",
            ExpressionAttributeValues={":version": {"N": str(version)}, ":deleted": {"BOOL": deleted}},
        )

    return Source(DynamoDBItemSource(database.items, clock, Random(1)), write)  # noqa: S311 - repeatable


def name() -> str:
    return f"n{next(fresh)}"


def test_many_items_are_read_by_their_keys_and_what_is_absent_or_deleted_is_left_out(source: Source) -> None:
    here, gone, absent = name(), name(), name()
    source.put(THINGS, id=here, text="x", version=3)
    source.put(THINGS, id=gone, deleted=True)
    found = source.reads.read_many(THINGS, [(here,), (gone,), (absent,), (here,)])
    assert found == {(here,): Stored({"id": here, "text": "x"}, 3)}
    assert source.reads.read_many(THINGS, []) == {}


def test_more_items_are_read_than_one_call_takes(source: Source) -> None:
    names = [name() for _ in range(120)]
    for each in names:
        source.put(THINGS, id=each)
    assert set(source.reads.read_many(THINGS, [(each,) for each in names])) == {(each,) for each in names}


def test_a_partition_is_read_in_order_up_to_a_number_and_without_what_is_deleted(source: Source) -> None:
    order = name()
    for line in ("c", "a", "d", "b"):
        source.put(LINES, order=order, line=line, deleted=line == "b")
    source.put(LINES, order=name(), line="e")
    found = source.reads.read_all(LINES, order, 10)
    assert [stored.attributes["line"] for stored in found] == ["a", "c", "d"]
    assert [stored.attributes["line"] for stored in source.reads.read_all(LINES, order, 2)] == ["a", "c"]
    assert source.reads.read_all(LINES, name(), 10) == []


class Dynamo:
    """A client that leaves things out, and what it was asked."""

    def __init__(self, leaves_out: int, pages: list[list[str]] | None = None) -> None:
        self.leaves_out = leaves_out
        self.pages = pages or []
        self.asked: list[Any] = []

    def batch_get_item(self, RequestItems: Any) -> Any:  # noqa: N803 - DynamoDB's name for it
        ((table, wanted),) = RequestItems.items()
        self.asked.append(wanted)
        given = wanted["Keys"][: max(0, len(wanted["Keys"]) - self.leaves_out)]
        left = wanted["Keys"][len(given) :]
        return {"Responses": {table: given}, "UnprocessedKeys": {table: {"Keys": left}} if left else {}}

    def query(self, **asked: Any) -> Any:
        self.asked.append(asked)
        page = self.pages[len(self.asked) - 1]
        more = {"LastEvaluatedKey": {"line": {"S": page[-1]}}} if len(self.asked) < len(self.pages) else {}
        return {"Items": [{"order": {"S": "o"}, "line": {"S": line}} for line in page], **more}


def dynamo(client: Dynamo) -> DynamoDBItemSource:
    items = DynamoDBItems(client, {"things": "things", "lines": "lines"})
    return DynamoDBItemSource(items, FakeClock(), Random(1))  # noqa: S311 - repeatable


def test_what_dynamodb_leaves_out_is_asked_for_again() -> None:
    client = Dynamo(leaves_out=1)
    source = dynamo(client)
    with pytest.raises(Unavailable):  # the last key is left out each time
        source.read_many(THINGS, [("a",), ("b",)])
    assert [len(wanted["Keys"]) for wanted in client.asked] == [2, 1, 1, 1]
    assert all(wanted["ConsistentRead"] for wanted in client.asked)
    client.leaves_out = 0
    assert set(replace(source).read_many(THINGS, [("a",), ("b",)])) == {("a",), ("b",)}


def test_a_partition_of_several_pages_is_read_consistently_to_its_end() -> None:
    client = Dynamo(0, pages=[["a", "b"], ["c"]])
    found = dynamo(client).read_all(LINES, "o", 10)
    assert [stored.attributes["line"] for stored in found] == ["a", "b", "c"]
    assert all(asked["ConsistentRead"] for asked in client.asked)
    assert client.asked[1]["ExclusiveStartKey"] == {"line": {"S": "b"}}


def test_no_page_is_asked_for_beyond_what_is_wanted() -> None:
    client = Dynamo(0, pages=[["a", "b"], ["c"]])
    assert len(dynamo(client).read_all(LINES, "o", 2)) == 2
    assert len(client.asked) == 1


def test_the_waits_between_two_tries_grow_and_end() -> None:
    client = Dynamo(leaves_out=5)
    source = dynamo(client)
    with pytest.raises(Unavailable, match="not the rest"):
        source.read_many(THINGS, [("a",)])
    clock: Any = source.clock
    assert len(clock.slept) == 3
    assert sum(clock.slept) < timedelta(seconds=2).total_seconds()
