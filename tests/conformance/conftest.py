"""Each store in both forms: the memory twin and the real thing."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from local.processes.children import Children
from local.stack.valkey import Valkey
from shared.backends.memory.cache import MemoryCache
from shared.backends.memory.database import MemoryDatabase
from shared.backends.memory.gates import MemoryGates
from shared.backends.memory.rates import MemoryRates
from shared.backends.redis.cache import RedisCache
from shared.backends.redis.connection import Connection
from shared.backends.redis.gates import RedisGates
from shared.backends.redis.leases import RedisStore
from shared.backends.redis.rates import RedisRates
from shared.claim import Granted
from shared.clock import SystemClock
from tests.aws import Database
from tests.cache_user import CacheUser, admit
from tests.conformance.accepting import Doors
from tests.world import THINGS, FakeClock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from shared.claim import Answer, Claim
    from shared.gate import Gate


PATIENCE = timedelta(seconds=20)  # where the server answers, however busy the machine is


@dataclass
class Stores:
    """Job records and items over one database."""

    records: Any
    items: Any
    clock: FakeClock


class Compared:
    """Records whose every granted claim is compared with what is then in the store."""

    def __init__(self, records: Any) -> None:
        self._records = records

    def __getattr__(self, name: str) -> Any:
        return getattr(self._records, name)

    def claim(self, claim: Claim, now: datetime) -> Answer:
        answer: Answer = self._records.claim(claim, now)
        if isinstance(answer, Granted):
            assert answer.view == self._records.view(claim.record)
        return answer


@pytest.fixture(scope="session")
def moto_database(aws_endpoint: str) -> Database:
    return Database.create(THINGS)


@pytest.fixture(params=["memory", "moto"])
def stores(request: pytest.FixtureRequest) -> Stores:
    clock = FakeClock()
    if request.param == "memory":
        database = MemoryDatabase(clock)
        return Stores(Compared(database), database, clock)
    moto: Database = request.getfixturevalue("moto_database")
    return Stores(Compared(moto.records(clock)), moto.items, clock)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Valkey]:
    """A real Valkey that speaks the cluster protocol and owns all slots, as a serverless cache does."""
    with Children() as children:
        server = Valkey(children, tmp_path_factory.mktemp("cluster"), cluster=True)
        server.start()
        admit(server)
        yield server


@dataclass
class Whole:
    """Leases and cache entries of one server, as one object: the memory twin is one."""

    leases: RedisStore
    entries: RedisCache

    def __getattr__(self, name: str) -> Any:
        return getattr(self.leases if hasattr(self.leases, name) else self.entries, name)


@pytest.fixture(params=["memory", "valkey", "cluster"])
def cache(request: pytest.FixtureRequest) -> Any:
    if request.param == "memory":
        return MemoryCache(SystemClock())
    connection = connection_to(request)
    return Whole(RedisStore(connection), RedisCache(connection))


@pytest.fixture(params=["memory", "valkey", "cluster"])
def rates(request: pytest.FixtureRequest) -> Any:
    return MemoryRates(SystemClock()) if request.param == "memory" else RedisRates(connection_to(request))


@dataclass(frozen=True)
class GatesInTime(RedisGates):
    """Gates on a real server, whose scripts are told the time by a test's clock."""

    clock: FakeClock = field(default_factory=FakeClock)

    def _ask(self, script: str, gate: Gate, *arguments: str) -> list[Any]:
        seconds, micros = divmod(round(1e9 + self.clock.monotonic() * 1e6), 1_000_000)
        told = script.replace("redis.call('TIME')", f"{{{seconds}, {micros}}}")
        return super()._ask(told, gate, *arguments)


@pytest.fixture(params=["memory", "valkey", "cluster"])
def gates(request: pytest.FixtureRequest) -> Any:
    clock = FakeClock()
    return MemoryGates(clock) if request.param == "memory" else GatesInTime(connection_to(request), clock)


@pytest.fixture(params=["valkey", "cluster"])
def served_rates(request: pytest.FixtureRequest) -> RedisRates:
    """Rates on a real server alone."""
    return RedisRates(connection_to(request))


def connection_to(request: pytest.FixtureRequest) -> Connection:
    """In cluster mode as the user that ElastiCache will know, so that its access string is proved to be enough."""
    server: Valkey = request.getfixturevalue(request.param)
    cluster = request.param == "cluster"
    user = CacheUser() if cluster else None
    return Connection(server.host, server.port, tls=False, cluster=cluster, credentials=user, wait=PATIENCE)


@pytest.fixture(params=["memory", "moto"])
def doors(request: pytest.FixtureRequest) -> Doors:
    clock = FakeClock()
    if request.param == "memory":
        database = MemoryDatabase(clock)
        return Doors(database, database, database)
    moto: Database = request.getfixturevalue("moto_database")
    return Doors(moto.acceptances(clock), moto.records(clock), moto.outbox)
