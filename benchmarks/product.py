"""Our side: jobs of the size that peers are given, their workers, and the product's own consumer on the stores of a measure."""

from __future__ import annotations

import time
from datetime import timedelta
from random import SystemRandom
from typing import TYPE_CHECKING, Any

from shared.backends.memory.cache import MemoryCache
from shared.backends.memory.database import MemoryDatabase
from shared.backends.memory.gates import MemoryGates
from shared.backends.memory.transport import MemoryTransport
from shared.backends.powertools import PowertoolsTelemetry
from shared.backends.redis.connection import Connection
from shared.clock import SystemClock, random_token
from shared.consumer import Consumer
from shared.job import job
from shared.payload import Payload
from shared.retry import Retry
from shared.runtime import assemble, connect
from shared.settings import Settings
from shared.table import Table
from shared.worker import Worker
from tests.world import NotingQueue, body, event, record_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from shared.commit import Commit
    from shared.job_record import Hold
    from shared.lease import LeaseStore
    from shared.unit_of_work import UnitOfWork

THINGS = Table("things", key="id")
OPTIONS: dict[str, Any] = {
    "version": 1,
    "timeout": timedelta(seconds=10),
    "max_latency": timedelta(minutes=1),
    "retry": Retry(max_attempts=3, base=timedelta(seconds=10), cap=timedelta(minutes=5)),
    "uses": (THINGS.read_write,),
}


class Note(Payload):
    """Write a text to a thing, after a wait that stands for a call of something outside.

    Attributes:
        wait: milliseconds.
    """

    thing: str
    text: str = "x"
    wait: int = 0


@job("note", lock=lambda note: f"thing/{note.thing}", **OPTIONS)
def note(payload: Note, work: UnitOfWork) -> dict[str, str]:
    """One wait, one item written, one tag invalidated, under one lock."""
    if payload.wait:
        time.sleep(payload.wait / 1000)
    work.create(THINGS, id=payload.thing, text=payload.text)
    work.invalidate(f"thing/{payload.thing}")
    return {"written": payload.text}


@job("plain-note", **OPTIONS)
def plain_note(payload: Note, work: UnitOfWork) -> dict[str, str]:
    """The same without a lock."""
    return note(payload, work)


@job("pause", lock=lambda note: f"thing/{note.thing}", **OPTIONS)
def pause(payload: Note, work: UnitOfWork) -> dict[str, str]:
    """One wait, or none, and one tag invalidated, under one lock; nothing is written but the job's own record."""
    if payload.wait:
        time.sleep(payload.wait / 1000)
    work.invalidate(f"thing/{payload.thing}")
    return {"written": payload.text}


WORKER = Worker("notes", jobs=(note, plain_note, pause))


def note_body(name: str, *, wait: int = 0, job_type: str = "note") -> str:
    """A message that asks for a note; its idempotency key is the thing's name. `wait` in milliseconds."""
    return body(job_type=job_type, idempotency_key=name, payload={"thing": name, "text": "x", "wait": wait})


def batch(bodies: Iterable[str]) -> dict[str, Any]:
    """The event that Lambda makes of such messages."""
    return event(*(record_of(text, f"m{place}") for place, text in enumerate(bodies)))


class Committing(MemoryDatabase):
    """The shipped store, whose commits take about as long as a transaction of DynamoDB does."""

    TAKES = 0.01  # seconds

    def commit(self, hold: Hold, commit: Commit, now: datetime) -> None:
        """Wait, as for an answer, and commit."""
        time.sleep(self.TAKES)
        super().commit(hold, commit, now)


def in_process(database: MemoryDatabase | None = None, leases: LeaseStore | None = None) -> Consumer:
    """The consumer with the stores that ship for tests, or with these; telemetry is the product's."""
    clock = SystemClock()
    database, gates = database or MemoryDatabase(clock), MemoryGates(clock)
    runtime = assemble(
        WORKER,
        records=database,
        items=database,
        outbox=database,
        parts=database,
        leases=leases or MemoryCache(clock),
        gates=gates,
        queue=NotingQueue(),
        transport=MemoryTransport(),
        telemetry=PowertoolsTelemetry(WORKER.name),
        clock=clock,
        random=SystemRandom(),
        tokens=random_token,
    )
    return Consumer(WORKER, runtime)


def settings(valkey_port: int, *, suffix: str = "bench", queue: str = "", dead: str = "") -> Settings:
    """The names of a stack; addresses of AWS stand in the environment."""
    return Settings(
        jobs_table=f"jobs-{suffix}",
        outbox_table=f"outbox-{suffix}",
        tables={THINGS.name: f"things-{suffix}"},
        queues={WORKER.name: queue or "http://127.0.0.1/notes"},
        dead_letter_queues={WORKER.name: dead or "http://127.0.0.1/dead"},
        cache_host="127.0.0.1",
        cache_port=str(valkey_port),
        cache_tls=False,
        cache_cluster=False,
    )


def on_stores(told: Settings) -> Consumer:
    """The consumer as it is deployed."""
    return Consumer(WORKER, connect(WORKER, told))


def valkey_connection(port: int, most: int = 10) -> Connection:
    """The product's connection to a Valkey of this machine."""
    return Connection("127.0.0.1", port, tls=False, cluster=False, most=most)
