"""What every store of brakes promises."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from shared.backends.dynamodb.brakes import DynamoDBBrakes
from shared.backends.memory.brakes import MemoryBrakes
from shared.rounds.brake import Brake, BrakeState
from tests.world import START

if TYPE_CHECKING:
    from tests.aws import Database

fresh = itertools.count()
BRAKE = Brake(BrakeState.PAUSED, "shop", "its breaker is open", START, START + timedelta(minutes=5))


@pytest.fixture(params=["memory", "moto"])
def brakes(request: pytest.FixtureRequest) -> Any:
    if request.param == "memory":
        return MemoryBrakes()
    database: Database = request.getfixturevalue("moto_database")
    return DynamoDBBrakes(database.client, database.jobs_table)


def worker() -> str:
    return f"worker-{next(fresh)}"


def test_a_brake_is_there_until_it_is_taken_off(brakes: Any) -> None:
    name = worker()
    assert brakes.read(name) is None
    assert brakes.write(name, BRAKE, None)
    assert brakes.read(name) == BRAKE
    assert brakes.write(name, None, BRAKE)
    assert brakes.read(name) is None
    assert brakes.write(name, replace(BRAKE, by_hand=True), None)
    assert brakes.read(name).by_hand


def test_a_brake_that_changed_since_it_was_seen_is_not_overwritten(brakes: Any) -> None:
    name = worker()
    brakes.write(name, BRAKE, None)
    other = replace(BRAKE, by_hand=True, by="somebody")
    assert not brakes.write(name, other, None)
    brakes.write(name, other, BRAKE)
    assert not brakes.write(name, None, BRAKE)
    assert not brakes.write(name, replace(BRAKE, state=BrakeState.LOOKING), BRAKE)
    assert brakes.read(name) == other


def test_a_write_whose_reply_was_lost_is_done(brakes: Any) -> None:
    name = worker()
    assert brakes.write(name, BRAKE, None)
    assert brakes.write(name, BRAKE, None)
    assert brakes.write(name, None, BRAKE)
    assert brakes.write(name, None, BRAKE)


def test_brakes_of_two_workers_are_two(brakes: Any) -> None:
    one, other = worker(), worker()
    brakes.write(one, BRAKE, None)
    assert brakes.read(other) is None
