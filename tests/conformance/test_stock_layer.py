"""Why the job record has a layer of its own: the stock layer lets a zombie overwrite or delete the winner's record."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from aws_lambda_powertools.utilities.idempotency import DynamoDBPersistenceLayer, IdempotencyConfig
from aws_lambda_powertools.utilities.idempotency.exceptions import IdempotencyItemNotFoundError

from shared.commit import Commit, Release
from shared.errors import ClaimLost
from shared.job_record import Status
from tests.conformance.claims import again, claim, granted
from tests.world import START, FakeClock

if TYPE_CHECKING:
    from tests.aws import Database

JOB = {"key": "payment-1"}


def stock(database: Database, *, key: str) -> DynamoDBPersistenceLayer:
    layer = DynamoDBPersistenceLayer(table_name=database.jobs_table, boto3_client=database.client)
    layer.configure(IdempotencyConfig(event_key_jmespath="key"), function_name=key)
    return layer


def test_the_stock_layer_lets_a_zombie_overwrite_the_winner(moto_database: Database) -> None:
    zombie, winner = (stock(moto_database, key="overwrite") for _ in range(2))
    zombie.save_inprogress(JOB, remaining_time_in_millis=0)  # pauses; its deadline passes
    winner.save_inprogress(JOB, remaining_time_in_millis=60_000)
    winner.save_success(JOB, {"by": "winner"})
    zombie.save_success(JOB, {"by": "zombie"})
    record = winner.get_record(JOB)
    assert record is not None
    assert record.response_json_as_dict() == {"by": "zombie"}  # the fault


def test_the_stock_layer_lets_a_zombie_delete_the_winner(moto_database: Database) -> None:
    zombie, winner = (stock(moto_database, key="delete") for _ in range(2))
    zombie.save_inprogress(JOB, remaining_time_in_millis=0)
    winner.save_inprogress(JOB, remaining_time_in_millis=60_000)
    winner.save_success(JOB, {"by": "winner"})
    zombie.delete_record(JOB, RuntimeError())
    with pytest.raises(IdempotencyItemNotFoundError):
        winner.get_record(JOB)  # the fault: the job would run again


def test_our_layer_refuses_both(moto_database: Database) -> None:
    clock = FakeClock()
    records = moto_database.records(clock)

    class Stores:
        pass

    stores = Stores()
    stores.records = records  # type: ignore[attr-defined]
    first = claim()
    zombie = granted(stores, first).hold  # type: ignore[arg-type]
    later = first.until + timedelta(seconds=1)
    winner = granted(stores, again(first), later).hold  # type: ignore[arg-type]
    records.commit(winner, Commit(Status.COMPLETED, '"winner"'), later)
    with pytest.raises(ClaimLost):
        records.commit(zombie, Commit(Status.COMPLETED, '"zombie"'), later)
    with pytest.raises(ClaimLost):
        records.release(zombie, Release(later), later)
    view = records.view(first.record)
    assert view is not None
    assert (view.status, view.result) == (Status.COMPLETED, '"winner"')
    assert later > START
