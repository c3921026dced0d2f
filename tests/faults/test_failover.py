"""Real Valkey servers that fail over, forget, load, fill up, cut and hang; each fault is seen at the server, too."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from datetime import timedelta
from random import SystemRandom
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from redis import Redis
from redis.exceptions import RedisError

from local.processes import Children
from local.valkey import Valkey
from shared.backends.breaker import Breaker
from shared.backends.memory_transport import MemoryTransport
from shared.backends.outbox import DynamoDBOutbox
from shared.backends.redis import RedisStore
from shared.backends.redis_connection import Connection
from shared.backends.redis_keys import lease_key
from shared.clock import SystemClock, random_token
from shared.consumer import Consumer
from shared.errors import CacheUnavailable, LeaseLost
from shared.runtime import assemble
from shared.telemetry import Silent
from shared.worker import Worker
from tests.aws import Database
from tests.faults.test_processes import Cutter
from tests.world import THINGS, Context, FakeClock, NotingQueue, body, event, failures, note_job, record_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from shared.unit_of_work import UnitOfWork
    from tests.world import Note

TTL = timedelta(seconds=20)
SHORT = timedelta(seconds=1)  # the shortest lease that a job may declare
PATIENCE = 20.0
KEY = "thing/a"  # the lock key of the job below


@pytest.fixture
def children() -> Iterator[Children]:
    with Children() as children:
        yield children


@pytest.fixture
def new_valkey(children: Children, tmp_path: Path) -> Callable[..., Valkey]:
    """Starts servers that may be broken."""
    made: list[Valkey] = []

    def start(**options: Any) -> Valkey:
        server = Valkey(children, tmp_path / f"valkey-{len(made)}", **options)
        made.append(server)
        server.start()
        return server

    return start


@contextlib.contextmanager
def asking(server: Valkey) -> Iterator[Any]:
    """The test's own way to a server, besides the product's."""
    with Redis(port=server.port, decode_responses=True, socket_timeout=PATIENCE) as redis:
        yield redis


def until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


def store_at(port: int, **options: Any) -> RedisStore:
    return RedisStore(Connection("127.0.0.1", port, tls=False, cluster=False, **options))


def follow(replica: Valkey, primary: Valkey) -> None:
    """Make one server the other's replica and wait until it has all of it."""
    with asking(primary) as redis:
        redis.config_set("repl-diskless-sync-delay", 0)
    with asking(replica) as redis:
        redis.replicaof(primary.host, primary.port)
        until(lambda: redis.info("replication")["master_link_status"] == "up")


def promote(replica: Valkey) -> None:
    with asking(replica) as redis:
        redis.replicaof("NO", "ONE")


def refusals(server: Valkey, code: str) -> int:
    """How often the server has said so."""
    with asking(server) as redis:
        said: Mapping[str, Any] = redis.info("errorstats").get(f"errorstat_{code}", {"count": 0})
        return int(said["count"])


def test_lck_10_a_primary_that_became_a_replica_is_used_again_once_it_is_promoted(
    new_valkey: Callable[..., Valkey],
) -> None:
    other, server = new_valkey(), new_valkey()
    store = store_at(server.port)
    assert store.acquire("order/1", "mine", TTL)
    follow(server, other)
    with pytest.raises(CacheUnavailable, match="READONLY"):
        store.acquire("order/2", "mine", TTL)
    assert refusals(server, "READONLY") == 2  # the witness: asked, and once more on a new connection
    promote(server)
    assert store.acquire("order/2", "mine", TTL)


def test_lck_10_a_name_that_leads_to_the_new_primary_is_looked_up_anew_and_nobody_notices(
    new_valkey: Callable[..., Valkey],
) -> None:
    old, new = new_valkey(), new_valkey()
    name = Cutter(old.port)  # where new connections of one address lead
    store = store_at(name.port)
    assert store.acquire("order/1", "mine", TTL)
    follow(new, old)
    promote(new)
    follow(old, new)  # the old primary comes back as a replica; the warm connection still leads to it
    name.target = new.port
    assert store.renew("order/1", "mine", TTL)
    assert store.acquire("order/2", "mine", TTL)
    assert refusals(old, "READONLY") == 1  # the witness: the warm connection, once
    with asking(new) as redis:
        assert redis.exists(lease_key("order/1"), lease_key("order/2")) == 2
    name.close()


def runtime_of(database: Database, store: RedisStore, handler: Callable[[Note, UnitOfWork], object]) -> Consumer:
    """A consumer over moto's DynamoDB and a real Valkey, whose one job does what `handler` does."""
    clock, queue = SystemClock(), NotingQueue()
    worker = Worker("notes", jobs=(note_job(handler, lease=SHORT),))
    runtime = assemble(
        worker,
        records=database.records(clock),
        items=database.items,
        outbox=DynamoDBOutbox(database.client, database.outbox_table),
        leases=store,
        queue=queue,
        transport=MemoryTransport(),
        telemetry=Silent(),
        clock=clock,
        random=SystemRandom(),
        tokens=random_token,
    )
    return Consumer(worker, runtime)


def delivered(consumer: Consumer, key: str) -> list[str]:
    """Deliver the message of that key once; give what is reported as failed."""
    return failures(consumer.handle(event(record_of(body(idempotency_key=key), key)), Context()))


class Counting:
    """A handler that adds one to a thing. The first attempt stops in the middle until it is let go on."""

    def __init__(self, *, stops: bool) -> None:
        self.stops = stops  # the first attempt, once it is told
        self.numbers: list[int] = []
        self.inside = threading.Event()
        self.go_on = threading.Event()
        self.told: list[bool] = []  # whether the first attempt was told that its lease is lost

    def __call__(self, payload: Note, work: UnitOfWork) -> object:
        is_first = not self.numbers
        self.numbers.append(work.fencing_number())
        thing = work.read(THINGS, payload.thing)
        if is_first:
            self.inside.set()
            assert self.go_on.wait(PATIENCE)
            self.told.append(_is_told(work))
            if self.stops:
                work.check()
        if thing is None:
            work.create(THINGS, id=payload.thing, times=1)
        else:
            times = thing["times"]
            assert isinstance(times, int)
            work.update(thing, times=times + 1)
        return None


def _is_told(work: UnitOfWork) -> bool:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            work.check()
        except LeaseLost:
            return True
        time.sleep(0.01)
    return False


@pytest.fixture
def database(aws_endpoint: str) -> Database:
    return Database.create(THINGS)


def times(database: Database) -> object:
    stored = database.items.read(THINGS, ("a",))
    return None if stored is None else stored.attributes["times"]


def test_i28_a_failover_that_loses_a_granted_lease_makes_two_holders_and_one_effect_each(
    database: Database, new_valkey: Callable[..., Valkey]
) -> None:
    primary, replica = new_valkey(), new_valkey()
    follow(replica, primary)
    promote(replica)  # from here on nothing reaches it: what the primary acknowledges now will be lost
    name = Cutter(primary.port)
    counting = Counting(stops=False)
    consumer = runtime_of(database, store_at(name.port), counting)
    first: list[list[str]] = []
    holder = threading.Thread(target=lambda: first.append(delivered(consumer, "first")))
    holder.start()
    assert counting.inside.wait(PATIENCE)
    with asking(primary) as redis:
        assert redis.exists(lease_key(KEY))  # acknowledged
    name.target = replica.port
    primary.signal(signal.SIGKILL)
    with asking(replica) as redis:
        assert not redis.exists(lease_key(KEY))  # the witness: lost
    other = runtime_of(database, store_at(replica.port), counting)
    assert delivered(other, "second") == []  # the second holder, while the first is at work
    assert times(database) == 1
    counting.go_on.set()
    holder.join()
    assert counting.told == [True]
    assert first == [["first"]]  # it changed nothing, and comes back
    assert times(database) == 1
    until(lambda: delivered(other, "first") == [])
    assert times(database) == 2
    assert counting.numbers == sorted(set(counting.numbers))  # I27: grown with every grant, across the failover
    name.close()


def test_i27_flushall_takes_the_lease_is_announced_and_fencing_numbers_go_on_growing(
    database: Database, new_valkey: Callable[..., Valkey]
) -> None:
    server = new_valkey()
    counting = Counting(stops=True)
    consumer = runtime_of(database, store_at(server.port), counting)
    first: list[list[str]] = []
    holder = threading.Thread(target=lambda: first.append(delivered(consumer, "first")))
    holder.start()
    assert counting.inside.wait(PATIENCE)
    with asking(server) as redis:
        assert redis.exists(lease_key(KEY))
        redis.flushall()
        assert redis.info("commandstats")["cmdstat_flushall"]["calls"] == 1  # the witness
    counting.go_on.set()
    holder.join()
    assert counting.told == [True]
    assert first == [["first"]]  # it stopped
    assert times(database) is None
    until(lambda: delivered(consumer, "first") == [])
    assert delivered(consumer, "second") == []
    assert times(database) == 2
    assert counting.numbers == sorted(set(counting.numbers))
    assert len(counting.numbers) == 3


def test_a_server_that_loads_its_data_is_unavailable_and_used_once_it_has_them(
    new_valkey: Callable[..., Valkey],
) -> None:
    # It answers others after every KiB that it loads, and takes 20 ms for each key.
    slowly = {"key-load-delay": "20000", "loading-process-events-interval-bytes": "1024", "rdbcompression": "no"}
    server = new_valkey(keeps=True, options=slowly)
    with asking(server) as redis:
        redis.mset({f"filler-{n}": "x" * 2000 for n in range(150)})
    store = store_at(server.port)
    assert store.acquire("order/1", "mine", TTL)
    server.stop()
    server.start()
    with pytest.raises(CacheUnavailable, match=r"BusyLoadingError, LOADING"):
        store.acquire("order/2", "mine", TTL)
    assert refusals(server, "LOADING") >= 2  # the witness
    with asking(server) as redis:
        until(lambda: redis.info("persistence")["loading"] == 0)
    assert store.acquire("order/2", "mine", TTL)


def test_i34_a_full_server_grants_no_lease_and_the_job_goes_on_fenced_by_its_commit(
    database: Database, new_valkey: Callable[..., Valkey]
) -> None:
    server = new_valkey()
    store = store_at(server.port)
    assert store.acquire("order/before", "mine", TTL)
    with asking(server) as redis:
        redis.config_set("maxmemory-policy", "noeviction")
        redis.config_set("maxmemory", 1)
    with pytest.raises(CacheUnavailable, match=r"OutOfMemoryError, OOM"):
        store.acquire("order/full", "mine", TTL)
    counting = Counting(stops=False)
    counting.numbers.append(0)  # nobody stops in the middle
    assert delivered(runtime_of(database, store, counting), "first") == []
    assert times(database) == 1
    assert refusals(server, "OOM") >= 2  # the witness: for the test's own lease and for the job's
    store.finish([], [("order/before", "mine")])  # what frees memory is still done
    with asking(server) as redis:
        assert not redis.exists(lease_key("order/before"))


def test_a_lease_is_renewed_through_connections_that_are_killed_again_and_again(
    new_valkey: Callable[..., Valkey],
) -> None:
    server = new_valkey()
    store = store_at(server.port)
    assert store.acquire("order/1", "mine", TTL)
    killed = 0
    with asking(server) as redis:
        for _ in range(20):
            killed += int(redis.client_kill_filter(_type="normal", skipme=True))
            assert store.renew("order/1", "mine", TTL)
    assert killed == 20  # the witness: each renewal found its connection cut


def test_no_script_is_missing_after_script_flush(new_valkey: Callable[..., Valkey]) -> None:
    server = new_valkey()
    store = store_at(server.port)
    assert store.acquire("order/1", "mine", TTL)
    with asking(server) as redis:
        redis.script_flush()
        assert redis.info("memory")["number_of_cached_scripts"] == 0  # the witness
    assert store.renew("order/1", "mine", TTL)
    assert refusals(server, "NOSCRIPT") == 0


@pytest.mark.parametrize("how", ["frozen", "paused"])
def test_lck_11_a_server_that_hangs_is_asked_a_few_times_then_by_one_after_the_pause(
    new_valkey: Callable[..., Valkey], how: str
) -> None:
    server = new_valkey()
    clock = FakeClock()
    store = store_at(server.port, breaker=Breaker(failures=2, monotonic=clock.monotonic))
    assert store.acquire("order/1", "mine", TTL)
    with asking(server) as redis:
        before = int(redis.info("stats")["total_connections_received"])
        if how == "paused":
            redis.execute_command("CLIENT", "PAUSE", 6_000, "ALL")  # it ends by itself: the server hears nobody
    process = psutil.Process(server._child.process.pid)  # type: ignore[union-attr]
    if how == "frozen":
        server.signal(signal.SIGSTOP)
        until(lambda: process.status() == psutil.STATUS_STOPPED)
    for _ in range(2):
        with pytest.raises(CacheUnavailable, match="TimeoutError"):
            store.renew("order/1", "mine", TTL)
    for _ in range(100):
        with pytest.raises(CacheUnavailable, match="not asked"):
            store.renew("order/1", "mine", TTL)
    if how == "frozen":
        server.signal(signal.SIGCONT)
    with asking(server) as redis:
        received = int(redis.info("stats")["total_connections_received"]) - before
    assert (
        received <= 4 + 1
    )  # two tries for each of two calls, the first of them on a warm connection; and the test's own
    until(lambda: _is_back(store, clock))


def _is_back(store: RedisStore, clock: FakeClock) -> bool:
    clock.pass_(timedelta(seconds=10))
    try:
        return store.renew("order/1", "mine", TTL)
    except CacheUnavailable:
        return False


class Password:
    """Credentials that somebody else changes."""

    def __init__(self, password: str) -> None:
        self.password = password
        self.asked = 0
        self.forgotten = 0

    def get_credentials(self) -> tuple[str, str]:
        self.asked += 1
        return "functions", self.password

    def forget(self) -> None:
        self.forgotten += 1


def set_password(server: Valkey, password: str) -> None:
    with asking(server) as redis:
        redis.execute_command("ACL", "SETUSER", "functions", "reset", "on", "~*", "+@all", f">{password}")


@pytest.mark.parametrize("cluster", [False, True])
def test_a_connection_cut_after_twelve_hours_comes_back_with_a_fresh_token(
    new_valkey: Callable[..., Valkey], cluster: bool
) -> None:
    server = new_valkey(cluster=cluster)
    set_password(server, "token-1")
    credentials = Password("token-1")
    to = Connection("127.0.0.1", server.port, tls=False, cluster=cluster, credentials=credentials)
    store = RedisStore(to)
    assert store.acquire("order/1", "mine", TTL)
    asked = credentials.asked
    set_password(server, "token-2")
    assert store.renew("order/1", "mine", TTL)
    assert credentials.asked == asked  # a warm connection goes on under the old one
    credentials.password = "token-2"
    with asking(server) as redis:
        assert redis.client_kill_filter(_type="normal", skipme=True) >= 1  # the witness
    assert store.renew("order/1", "mine", TTL)
    assert credentials.asked > asked
    assert credentials.forgotten == 0


def test_an_old_token_is_refused_by_name_and_work_goes_on_with_a_new_one(new_valkey: Callable[..., Valkey]) -> None:
    server = new_valkey()
    set_password(server, "token-2")
    credentials = Password("token-1")
    store = store_at(server.port, credentials=credentials)
    with pytest.raises(CacheUnavailable, match=r"AuthenticationError, WRONGPASS"):
        store.acquire("order/1", "mine", TTL)
    assert (credentials.asked, credentials.forgotten) == (2, 1)
    with asking(server) as redis, contextlib.suppress(RedisError):
        assert any(entry["reason"] == "auth" for entry in redis.acl_log())  # the witness
    credentials.password = "token-2"
    assert store.acquire("order/1", "mine", TTL)
