"""A worker in a world of its own: memory stores, a clock that tests turn, chance without chance."""

from __future__ import annotations

import hashlib
import json
from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Any

from shared.backends.memory.cache import MemoryCache
from shared.backends.memory.database import MemoryDatabase
from shared.backends.memory.files import MemoryFiles
from shared.backends.memory.gates import MemoryGates
from shared.backends.memory.transport import MemoryTransport
from shared.claim import Claim, Granted
from shared.clock import Surroundings
from shared.consumer import Consumer
from shared.delivery import DEAD_LETTER_ATTRIBUTE, Delivery, read_event
from shared.job import job
from shared.job_record import SYSTEM
from shared.lease import Want
from shared.outbox import SHARDS
from shared.payload import Payload
from shared.retry import Retry
from shared.rounds.counting import Counting
from shared.rounds.rescue import Rescue
from shared.runtime import Runtime, assemble
from shared.table import Table
from shared.telemetry import Silent
from shared.unit_of_work import UnitOfWork
from shared.work.calls import Calls, Intents
from shared.work.splitting import Splitting
from shared.work.steps import Steps
from shared.work.way import Ways
from shared.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from shared.dependency import Reply
    from shared.job import Use
    from shared.outcome import Outcome
    from shared.producer import Outgoing

START = datetime(2026, 1, 1, tzinfo=UTC)
THINGS = Table("things", key="id")


@dataclass
class FakeClock:
    """Time stands still until a test moves it."""

    moment: datetime = START
    slept: list[float] = field(default_factory=list)

    def now(self) -> datetime:
        return self.moment

    def monotonic(self) -> float:
        return (self.moment - START).total_seconds()

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.moment += timedelta(seconds=seconds)

    def pass_(self, time: timedelta) -> None:
        self.moment += time


@dataclass
class Context:
    """A Lambda context with a fixed time left."""

    left: timedelta = timedelta(seconds=60)
    aws_request_id: str = "request-1"

    def get_remaining_time_in_millis(self) -> int:
        return int(self.left.total_seconds() * 1000)


class Counter:
    """Names that are fresh and always the same: the hashes of 1, 2, 3."""

    def __init__(self) -> None:
        self.number = 0

    def __call__(self) -> str:
        self.number += 1
        return hashlib.sha256(str(self.number).encode()).hexdigest()[:32]


class Note(Payload):
    """Write a text to a thing."""

    thing: str
    text: str = "x"


def note_job(handler: Callable[[Note, UnitOfWork], object] | None = None, **options: Any) -> Any:
    """A job that writes its text to its thing, or does what `handler` does."""

    def write(payload: Note, work: UnitOfWork) -> object:
        found = work.read(THINGS, payload.thing)
        if found is None:
            work.create(THINGS, id=payload.thing, text=payload.text, times=1)
        else:
            times = found["times"]
            assert isinstance(times, int)
            work.update(found, text=payload.text, times=times + 1)
        work.invalidate(f"thing/{payload.thing}")
        return {"written": payload.text}

    def run(payload: Note, work: UnitOfWork) -> object:
        return (handler or write)(payload, work)

    declared = {
        "timeout": timedelta(seconds=10),
        "max_latency": timedelta(minutes=1),
        "retry": Retry(max_attempts=3, base=timedelta(seconds=10), cap=timedelta(minutes=5)),
        "lock": lambda payload: f"thing/{payload.thing}",
        "uses": (THINGS.read_write,),
        **options,
    }
    return job("note", **declared)(run)


@dataclass
class NotingQueue:
    """A queue that has no messages and notes what is done with them."""

    sent: list[Outgoing] = field(default_factory=list)
    hidden: dict[str, timedelta] = field(default_factory=dict)
    dead: deque[tuple[Delivery, str]] = field(default_factory=deque)

    def send(self, batch: Sequence[Outgoing]) -> list[str]:
        self.sent.extend(batch)
        return [f"sent-{len(self.sent) - len(batch) + place}" for place in range(len(batch))]

    def hide(self, delivery: Delivery, after: timedelta) -> None:
        self.hidden[delivery.message_id] = after

    def dead_letter(self, delivery: Delivery, reason: str) -> None:
        self.dead.append((delivery, reason))


@dataclass
class World:
    """A worker with its stores; `deliver` is one receipt of a message."""

    worker: Worker
    clock: FakeClock = field(default_factory=FakeClock)
    transport: MemoryTransport = field(default_factory=MemoryTransport)

    def __post_init__(self) -> None:
        self.tokens = Counter()
        self.database: Any = MemoryDatabase(self.clock)
        self.cache: Any = MemoryCache(self.clock)
        self.gates: Any = MemoryGates(self.clock)
        self.queue: Any = NotingQueue()
        self.files: Any = MemoryFiles()
        self.telemetry = Silent()
        self.receipts = 0

    @classmethod
    def of(cls, handler: Callable[[Note, UnitOfWork], object] | None = None, **options: Any) -> World:
        return cls(Worker("notes", jobs=(note_job(handler, **options),)))

    @property
    def runtime(self) -> Runtime:
        return assemble(
            self.worker,
            records=self.database,
            items=self.database,
            outbox=self.database,
            parts=self.database,
            leases=self.cache,
            gates=self.gates,
            queue=self.queue,
            transport=self.transport,
            telemetry=self.telemetry,
            clock=self.clock,
            random=Random(7),  # noqa: S311 - repeatable
            tokens=self.tokens,
            files=self.files,
        )

    def execute(self, body: str, *, left: timedelta = timedelta(seconds=60), **record: Any) -> Outcome:
        """Run one delivery through the pipeline, without settling."""
        runtime = self.runtime
        with runtime.keeper:
            return runtime.execution.execute(self.delivery(body, **record), self.clock.now() + left)

    def run(self, body: str, *, left: timedelta = timedelta(seconds=60), **record: Any) -> tuple[Outcome, bool]:
        """Execute and settle one delivery; give the outcome and whether it was acknowledged."""
        runtime = self.runtime
        delivery = self.delivery(body, **record)
        with runtime.keeper:
            outcome = runtime.execution.execute(delivery, self.clock.now() + left)
            return outcome, runtime.settlement.settle(delivery, outcome)

    def run_long(self, body: str) -> tuple[Outcome, bool]:
        """The same in an invocation that lasts as long as the worker's function may."""
        return self.run(body, left=self.worker.function_timeout)

    def rescue_all(self, *job_types: str) -> None:
        """The sweeper's round through all shards: jobs of these types, or of all, whose message must be lost are sent anew."""
        routes = dict.fromkeys(job_types or self.worker.job_types.by_name, self.worker.name)
        counting = Counting(self.database, routes, self.clock)
        rescue = Rescue(self.database, self.database, routes, self.clock, self.telemetry, counting)
        for shard in range(SHARDS):
            rescue.rescue(shard, self.clock.now() + timedelta(minutes=1))

    def handle(self, event: object, context: Any = None) -> dict[str, Any]:
        """Invoke the consumer."""
        return Consumer(self.worker, self.runtime).handle(event, Context() if context is None else context)

    def delivery(self, body: str, **record: Any) -> Delivery:
        self.receipts += 1
        (delivery,) = read_event(event(record_of(body, f"m{self.receipts}", **record)))
        return delivery

    def thing(self, name: str) -> Mapping[str, Any] | None:
        stored = self.database.read(THINGS, (name,))
        return None if stored is None or stored.deleted else stored.attributes


def acquired(store: Any, key: str, token: str, ttl: timedelta) -> bool:
    """Take a lock key for a token, beside the pipeline; give whether it was granted."""
    (granted,) = store.acquire_all((Want(key, token, ttl),))
    return bool(granted)


def unit_of_work(  # of a job that is held, as an attempt has it
    answer: Callable[..., Reply],
    uses: tuple[Use, ...],
    database: MemoryDatabase,
    *,
    worker: str = "notes",
    time: timedelta = timedelta(seconds=30),
    **more: Any,
) -> UnitOfWork:
    """What a handler is given at the first attempt of a job, where a test calls it by itself."""
    clock = database.clock
    here = Surroundings(clock, Random(7), Counter())  # noqa: S311 - repeatable
    deadline = clock.now() + time
    claim = Claim("r", SYSTEM, "note", "k", "1:a", "{}", 1, "attempt-token", deadline, 3, 0)
    granted = database.claim(claim, clock.now())
    assert isinstance(granted, Granted)
    way = Ways(MemoryGates(clock), MemoryGates(clock), 1, here, Silent()).way("note", None)
    splitting = Splitting(database, granted.view, (), worker, here.tokens)
    values: dict[str, Any] = {
        "calls": Calls(MemoryTransport(answer), clock, here.tokens, way, Intents(database, granted.hold)),
        "stopping": here.stopping,
        "steps": Steps(database, granted, lambda _: None, deadline, clock, splitting),
        "random": here.random,
        **more,
    }
    return UnitOfWork(
        items=database,
        clock=clock,
        tokens=here.tokens,
        worker=worker,
        idempotency_key="k",
        attempt=1,
        token="attempt-token",
        deadline=deadline,
        uses=uses,
        **values,
    )


def body(**changes: Any) -> str:
    """A message's body; a field set to ... is left out."""
    envelope = {"job_type": "note", "idempotency_key": "k1", "payload": {"thing": "a"}, **changes}
    return json.dumps({name: value for name, value in envelope.items() if value is not ...})


def record_of(
    text: str, message_id: str = "m1", *, group: str | None = None, death: int = 0, **more: Any
) -> dict[str, Any]:
    """A record as Lambda gives it."""
    attributes: dict[str, Any] = {}
    if death:
        reason = json.dumps({"death": death})
        attributes[DEAD_LETTER_ATTRIBUTE] = {"stringValue": reason, "dataType": "String"}
    system = {"ApproximateReceiveCount": "1", "SentTimestamp": "1767225600000"}
    if group is not None:
        system["MessageGroupId"] = group
    return {
        "messageId": message_id,
        "receiptHandle": f"receipt-{message_id}",
        "body": text,
        "attributes": {**system, **more.pop("system", {})},
        "messageAttributes": {**attributes, **more.pop("attributes", {})},
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:eu-central-1:000000000000:notes",
        **more,
    }


def event(*records: dict[str, Any]) -> dict[str, Any]:
    """A batch as Lambda gives it."""
    return {"Records": list(records)}


def failures(answer: dict[str, Any]) -> list[str]:
    """The ids that a partial response names."""
    return [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]
