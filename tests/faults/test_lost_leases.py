"""Jobs whose lease a real Valkey lost, or could not grant: two holders, one effect each, and numbers that only grow."""

from __future__ import annotations

import signal
import threading
import time
from datetime import timedelta
from random import SystemRandom
from typing import TYPE_CHECKING

import pytest

from shared.backends.dynamodb.outbox import DynamoDBOutbox
from shared.backends.memory.gates import MemoryGates
from shared.backends.memory.transport import MemoryTransport
from shared.backends.redis.keys import lease_key
from shared.clock import SystemClock, random_token
from shared.consumer import Consumer
from shared.errors import CacheUnavailable, LeaseLost
from shared.runtime import assemble
from shared.telemetry import Silent
from shared.worker import Worker
from tests.aws import Database
from tests.faults.cutter import Cutter
from tests.faults.valkeys import PATIENCE, TTL, asking, follow, promote, refusals, store_at
from tests.waiting import until
from tests.world import THINGS, Context, NotingQueue, acquired, body, event, failures, note_job, record_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from local.stack.valkey import Valkey
    from shared.backends.redis.leases import RedisStore
    from shared.unit_of_work import UnitOfWork
    from tests.world import Note

SHORT = timedelta(seconds=1)  # the shortest lease that a job may declare
KEY = "thing/a"  # the lock key of the job below


def runtime_of(database: Database, store: RedisStore, handler: Callable[[Note, UnitOfWork], object]) -> Consumer:
    """A consumer over moto's DynamoDB and a real Valkey, whose one job does what `handler` does."""
    clock, queue = SystemClock(), NotingQueue()
    worker = Worker("notes", jobs=(note_job(handler, lease=SHORT),))
    runtime = assemble(
        worker,
        records=database.records(clock),
        items=database.items,
        outbox=DynamoDBOutbox(database.client, database.outbox_table),
        parts=database.parts(clock),
        leases=store,
        gates=MemoryGates(clock),
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


def test_i34_a_full_server_grants_no_lease_and_the_job_goes_on_fenced_by_its_commit(
    database: Database, new_valkey: Callable[..., Valkey]
) -> None:
    server = new_valkey()
    store = store_at(server.port)
    assert acquired(store, "order/before", "mine", TTL)
    with asking(server) as redis:
        redis.config_set("maxmemory-policy", "noeviction")
        redis.config_set("maxmemory", 1)
    with pytest.raises(CacheUnavailable, match=r"OutOfMemoryError, OOM"):
        acquired(store, "order/full", "mine", TTL)
    counting = Counting(stops=False)
    counting.numbers.append(0)  # nobody stops in the middle
    assert delivered(runtime_of(database, store, counting), "first") == []
    assert times(database) == 1
    assert refusals(server, "OOM") >= 2  # the witness: for the test's own lease and for the job's
    store.finish([], [("order/before", "mine")])  # what frees memory is still done
    with asking(server) as redis:
        assert not redis.exists(lease_key("order/before"))
