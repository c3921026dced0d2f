"""The lookout over a real Valkey: what it tells operators, and that it brakes by what workers have left there."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from functions import lookout
from functions.outside.payment_provider import PAYMENT_PROVIDER
from shared.backends.redis.connection import Connection
from shared.backends.redis.gates import RedisGates
from shared.backends.redis.held_leases import RedisLeases
from shared.backends.redis.leases import RedisStore
from shared.errors import EventError
from shared.gate import Gate
from shared.rounds.brake import Brake, BrakeState
from shared.settings import Settings
from tests.aws import Database
from tests.world import START, Context, acquired

if TYPE_CHECKING:
    from local.stack.valkey import Valkey

MINUTE = timedelta(minutes=1)
GATE: Any = PAYMENT_PROVIDER.gate


@pytest.fixture
def connection(valkey: Valkey) -> Connection:
    connection = Connection(valkey.host, valkey.port, tls=False, cluster=False, wait=timedelta(seconds=20))
    connection.run(lambda lines: lines.client.flushall())
    return connection


@pytest.fixture
def settings(aws_endpoint: str, valkey: Valkey) -> Settings:
    del aws_endpoint
    return Settings(
        Database.create().jobs_table,
        "outbox",
        cache_host=valkey.host,
        cache_port=str(valkey.port),
        cache_tls=False,
        cache_cluster=False,
        mappings={"payments": "uuid 20"},
        gates={"payment-provider": GATE.written},
        needs={"payments": "payment-provider"},
    )


def test_what_a_function_is_told_of_a_gate_is_enough_to_look_at_it() -> None:
    told: Any = Gate.read(GATE.name, GATE.written)
    assert (told.name, told.call, told.breaker.ramp) == (GATE.name, GATE.call, GATE.breaker.ramp)
    assert told.breaker.longest_pause == GATE.breaker.longest_pause
    assert Gate("plain", MINUTE).written is None


def test_it_tells_of_gates_and_locks(settings: Settings, connection: Connection) -> None:
    looking = lookout.connect(Settings.from_environ(settings.to_environ()))
    RedisGates(connection).enter(GATE, "call", is_retry=False, patience=timedelta(0))
    store = RedisStore(connection)
    for key in ("order/1", "order/{2} é", "user/3"):
        acquired(store, key, f"token-of-{key}", 10 * MINUTE)
    assert looking.answer({"look": "gates"})["gates"] == {
        "payment-provider": {"open_for_s": 0, "down_for_s": None, "calls": 1, "failures": 0, "ramping": False}
    }
    answer = looking.answer({"look": "locks", "start": "order/", "most": 10})
    assert ([lock["key"] for lock in answer["locks"]], answer["complete"]) == (["order/1", "order/{2} é"], True)
    answer = looking.answer({"look": "locks", "start": "", "most": 2})
    assert (len(answer["locks"]), answer["complete"]) == (2, False)
    lock = looking.answer({"look": "lock", "key": "user/3"})["lock"]
    assert lock["holder"] == "token-of"  # never the whole token, which would release it
    assert 599 < lock["left_s"] <= 600
    assert looking.answer({"look": "lock", "key": "user/4"}) == {"lock": None}


def test_a_question_that_there_is_not_is_an_error(settings: Settings, connection: Connection) -> None:
    del connection
    with pytest.raises(EventError, match="no such question"):
        lookout.connect(settings).answer({"look": "everything"})


def test_a_cache_that_is_gone_is_told(settings: Settings) -> None:
    import dataclasses  # noqa: PLC0415 - one test

    gone = dataclasses.replace(settings, cache_port="1")
    assert set(lookout.connect(gone).answer({"look": "gates"})) == {"unavailable"}


def test_its_round_pauses_what_a_dead_dependency_keeps_waiting(
    settings: Settings, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, Any]] = []

    class Api:
        def update_event_source_mapping(self, **words: Any) -> None:
            asked.append(words)

    made = lookout.connect(settings)
    object.__setattr__(made.controller.mappings, "client", Api())
    monkeypatch.setattr(lookout, "lookout_here", lambda: made)
    gates = RedisGates(connection)
    for number in range(GATE.breaker.failures):
        gates.enter(GATE, f"c{number}", is_retry=False, patience=MINUTE)
        gates.leave(GATE, f"c{number}", served=False)
    lookout.handler({"source": "aws.events"}, Context())
    assert asked == []  # it is down for a moment only
    brakes = made.controller.brakes
    brakes.write("payments", Brake(BrakeState.PAUSED, "payment-provider", "it is down", START, START), None)
    lookout.handler({}, Context())
    assert asked == [{"UUID": "uuid", "Enabled": False}]


def test_the_list_of_locks_looks_at_leases_alone(connection: Connection) -> None:
    connection.run(lambda lines: lines.client.set("cache:{a}", "x"))
    assert RedisLeases(connection).find("", 10) == ([], True)
