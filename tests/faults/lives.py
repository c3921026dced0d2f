"""What the processes do that tests kill: consume, relay, produce, read. They are forked from one that has imported all."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import timedelta
from multiprocessing import get_context
from random import SystemRandom
from typing import TYPE_CHECKING, Any

from functions import outbox_relay, outbox_sweeper, part_counter
from functions.payments import CapturePayment, capture_payment
from local.invoking.event_source_mapping import EventSourceMapping
from ops.letters.desk import Desk
from ops.letters.replay import Care, Replay
from ops.letters.selection import Selection
from shared import runtime
from shared.backends.aws import client
from shared.backends.dynamodb.operator_records import DynamoDBOperatorRecords
from shared.backends.redis.cache import RedisCache
from shared.backends.redis.connection import Connection
from shared.backends.sqs.dead_letters import SqsDeadLetters
from shared.cache import Cache
from shared.caching.store import Loaded
from shared.clock import Surroundings, SystemClock, random_token
from shared.consumer import Consumer
from shared.failpoints import Failpoint, armed
from shared.tag import Version
from shared.telemetry import Silent
from tests.faults.jobs import WORKERS
from tests.modes import Mode, entered
from tests.stack import ended_parts, streamed
from tests.world import Context

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.process import BaseProcess
    from pathlib import Path

    from shared.settings import Settings


@dataclass(frozen=True, slots=True)
class Life:
    """A process: what it does, for how long, and where it dies.

    Attributes:
        program: name of a function below.
        settings: of its stack.
        environ: variables it needs, like the address of AWS.
        dies_at: the failpoint at which it kills itself.
        after: how often it passes it before.
        worker: which of `WORKERS` it runs.
        seconds: after which it ends by itself.
        witness: a file in which it notes the failpoint at which it dies. Its exit status says less: the server that
            forks the processes may miss it on a busy machine, and then tells 255.
        arguments: of the program.
    """

    program: str
    settings: Settings
    environ: dict[str, str]
    dies_at: Failpoint | None = None
    after: int = 0
    worker: str = "crashing"
    mode: Mode = Mode.NORMAL
    seconds: float = 60.0
    arguments: dict[str, Any] = field(default_factory=dict)
    witness: Path | None = None

    def start(self) -> BaseProcess:
        """Begin it."""
        context = get_context("forkserver")
        context.set_forkserver_preload(["tests.faults.lives"])
        process = context.Process(target=live, args=(self,), daemon=True)
        process.start()
        return process


def live(life: Life) -> None:
    """Run in the process of its own; killing itself is as sudden as being killed."""
    os.environ.update(life.environ)
    logging.disable()
    sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115 - metrics of a process that is to die

    passed = Counter[Failpoint]()

    def die(point: Failpoint) -> None:
        passed[point] += 1
        if point is life.dies_at and passed[point] > life.after:
            if life.witness is not None:
                life.witness.write_text(point)
            os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(60)

    deadline = time.monotonic() + life.seconds
    with armed(die), entered(life.mode):
        while time.monotonic() < deadline:
            with contextlib.suppress(Exception):  # a store of a busy machine did not answer: Lambda would come again
                return PROGRAMS[life.program](life)
            time.sleep(0.5)
    return None


def consume(life: Life) -> None:
    """Lambda's poller and a consumer."""
    worker = WORKERS[life.worker]
    made = runtime.connect(worker, life.settings)
    consumer = Consumer(made.worker, made)
    timeout = made.worker.function_timeout
    url = life.settings.queues[worker.name]
    mapping = EventSourceMapping(client("sqs"), url, consumer.handle, lambda: Context(timeout), worker.batch_size)
    deadline = time.monotonic() + life.seconds
    while time.monotonic() < deadline:
        if not mapping.poll():
            time.sleep(0.1)


def relay(life: Life) -> None:
    """The stream and the relay: what is in the outbox now, once."""
    items = client("dynamodb").scan(TableName=life.settings.outbox_table, ConsistentRead=True)["Items"]
    records = [{"eventSource": "aws:dynamodb", "eventName": "INSERT", "dynamodb": {"NewImage": item}} for item in items]
    made = outbox_relay.connect(life.settings)
    made.relay(outbox_relay.read_stream({"Records": records}, made.clock.now()))


def rescue(life: Life) -> None:
    """The round of a minute: lost jobs are sent anew."""
    made = outbox_sweeper.connect(replace(life.settings, routes={"capture-payment": "payments"}))
    made.make(made.sweeper.clock.now() + timedelta(seconds=30))


def count(life: Life) -> None:
    """The stream of the job records and the part counter: what has ended by now, once."""
    ended = ended_parts(client("dynamodb"), life.settings)
    part_counter.connect(life.settings).count(streamed(ended))


def relay_on(life: Life) -> None:
    """The stream and the relay, again and again, as a stream delivers again what failed."""
    made, dynamodb = outbox_relay.connect(life.settings), client("dynamodb")
    done: set[str] = set()
    deadline = time.monotonic() + life.seconds
    while time.monotonic() < deadline:
        with contextlib.suppress(Exception):
            items = dynamodb.scan(TableName=life.settings.outbox_table, ConsistentRead=True)["Items"]
            streamed = [item for item in items if not item["id"]["S"].startswith("unstreamed-")]
            fresh = [
                item for item in streamed if item["id"]["S"] not in done and not {"sent_at", "parked"} & item.keys()
            ]
            records = [
                {"eventSource": "aws:dynamodb", "eventName": "INSERT", "dynamodb": {"NewImage": item}} for item in fresh
            ]
            if records:
                made.relay(outbox_relay.read_stream({"Records": records}, made.clock.now()))
                done |= {item["id"]["S"] for item in fresh}
        time.sleep(0.2)


def sweep_on(life: Life) -> None:
    """The sweeper's schedule, at a pace at which its grace is over in no time."""
    made = outbox_sweeper.connect(replace(life.settings, pace=0.001))
    deadline = time.monotonic() + life.seconds
    while time.monotonic() < deadline:
        with contextlib.suppress(Exception):
            made.make(made.sweeper.clock.now() + timedelta(seconds=30))
        time.sleep(0.2)


def produce(life: Life) -> None:
    """A producer that sends one capture."""
    order, intent = life.arguments["order"], life.arguments["intent"]
    sender = runtime.producer(life.settings.queues["payments"])
    sender.enqueue(capture_payment.message(CapturePayment(order_id=order, payment_intent_id=intent), key=order))


def read(life: Life) -> None:
    """A reader that fills the cache."""
    cached_status(life.settings, life.arguments["order"])


def cached_status(settings: Settings, order: str) -> str | None:
    """An order's status through the cache; a reader that dies while it loads holds the others back for a moment only."""

    def load() -> Loaded:
        key = {"order_id": {"S": order}}
        item = client("dynamodb").get_item(TableName=settings.tables["orders"], Key=key, ConsistentRead=True)["Item"]
        return Loaded(item["status"]["S"], Version(int(item["version"]["N"])))

    connection = Connection(settings.cache_host, int(settings.cache_port), tls=False, cluster=False)
    here = Surroundings(SystemClock(), SystemRandom(), random_token)
    cache = Cache(RedisCache(connection), here, Silent(), lease=timedelta(seconds=1), sample=0)
    return cache.read(f"order/{order}", "status", load)


def replay(life: Life) -> None:
    """An operator who replays every dead letter; what he holds when he dies comes back in seconds."""
    desk_of(life.settings, life.arguments["worker"], life.arguments["hidden"]).run()


def desk_of(settings: Settings, worker: str, hidden: float) -> Replay:
    """A replay of all of a worker's dead letters."""
    clock, sqs = SystemClock(), client("sqs")
    queue = SqsDeadLetters(sqs, settings.dead_letter_queues[worker], settings.queues[worker], wait=0)
    records = DynamoDBOperatorRecords(client("dynamodb"), settings.jobs_table, clock, SystemRandom())
    desk = Desk(worker, queue, records, clock, hidden=timedelta(seconds=hidden))
    return Replay(desk, Selection(everything=True), Care(canary=0, watches=False, rate=None), "operator")


PROGRAMS: dict[str, Callable[[Life], None]] = {
    "consume": consume,
    "count": count,
    "relay": relay,
    "relay_on": relay_on,
    "replay": replay,
    "rescue": rescue,
    "sweep_on": sweep_on,
    "produce": produce,
    "read": read,
}
