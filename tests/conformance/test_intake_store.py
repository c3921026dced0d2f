"""What every store of closed job types promises."""

from __future__ import annotations

import itertools
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from shared.backends.dynamodb.intake import DynamoDBIntakeStore
from shared.backends.memory.intake import MemoryIntakeStore
from shared.intake.shedding import Closed
from tests.world import START

if TYPE_CHECKING:
    from tests.aws import Database

fresh = itertools.count()
HOUR = timedelta(hours=1)


@pytest.fixture(params=["memory", "moto"])
def store(request: pytest.FixtureRequest) -> Any:
    if request.param == "memory":
        return MemoryIntakeStore()
    database: Database = request.getfixturevalue("moto_database")
    return DynamoDBIntakeStore(database.client, database.jobs_table)


def name() -> str:
    return f"job-type-{next(fresh)}"


def test_a_job_type_of_which_nothing_was_said_is_not_closed(store: Any) -> None:
    assert store.closed(name()) is None


def test_what_was_closed_is_closed_until_it_is_opened_and_no_other_with_it(store: Any) -> None:
    one, other = name(), name()
    store.close(one, Closed(START + HOUR, "the provider is down"))
    assert store.closed(one) == Closed(START + HOUR, "the provider is down")
    assert store.closed(other) is None
    for _ in range(2):
        store.open(one)
        assert store.closed(one) is None


def test_what_is_said_last_holds(store: Any) -> None:
    one = name()
    store.close(one, Closed(START + HOUR, "first"))
    store.close(one, Closed(START, "second"))
    assert store.closed(one) == Closed(START, "second")


def test_an_item_of_the_jobs_table_goes_by_itself_after_its_end(moto_database: Database) -> None:
    one = name()
    DynamoDBIntakeStore(moto_database.client, moto_database.jobs_table).close(one, Closed(START, "over"))
    item = moto_database.client.get_item(TableName=moto_database.jobs_table, Key={"id": {"S": f"intake/{one}"}})["Item"]
    assert int(item["ttl"]["N"]) >= int(START.timestamp())
