"""How fast a replay is beside the usual one: receive a letter, send it, delete it, one after the other. Over HTTP, in one run.

The usual one does less: it makes no job ready to run again, and no attempt of its copies would be granted.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from rich.progress import track
from rich.table import Table

from local.processes.children import Children
from local.stack.standin import start_standin
from local.stack.valkey import Valkey
from ops.letters.desk import Desk
from ops.letters.replay import Care, Replay
from ops.letters.selection import Selection
from ops.letters.verdict import Fate
from ops.stack.together import side_by_side
from shared.backends.aws import client
from shared.backends.sqs.dead_letters import SqsDeadLetters
from shared.backends.sqs.queue import SqsQueue
from shared.claim import Claim, Granted
from shared.clock import SystemClock
from shared.delivery import read_event
from shared.job_record import SYSTEM, record_id
from shared.outcome import Failure
from tests.aws import CREDENTIALS, Database, create_queue
from tests.operated import ME
from tests.world import body, event, record_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

LETTERS = 200
# Seconds that a call takes to travel and to be done on AWS's side, beside what the stand-in takes. SQS's own guide speaks of tens of
# milliseconds, from within the region; a desk in the same country is further away.
TRAVELS = (0.0, 0.02, 0.05)
TIMES = 3
LEAST = 8.0
FAR = TRAVELS[1:]
PATIENT = 30.0  # seconds: the stand-in answers one call after another


@dataclass(frozen=True, slots=True)
class Measured:
    """What one way took for a letter."""

    seconds: float
    calls: float


@dataclass
class Calls:
    """Counts what a client asks for, and lets each call travel."""

    travels: float
    number: int = 0

    def of(self, *clients: Any) -> None:
        for each in clients:
            each.meta.events.register("before-send.*", self._count)

    def _count(self, **_: Any) -> None:
        self.number += 1
        time.sleep(self.travels)


class Bench:
    """Dead letters on a server of AWS's stand-in, each with its job record."""

    def __init__(self) -> None:
        self.clock = SystemClock()
        self.database = Database.create()
        self.records = self.database.records(self.clock)

    def letters(self, count: int) -> tuple[str, str]:
        """The URLs of a queue and of its dead-letter queue, which holds so many letters."""
        sqs = client("sqs", read_seconds=PATIENT)
        source, dead = create_queue(sqs)
        queue = SqsQueue(sqs, source, dead)
        now = self.clock.now()
        failure = Failure(now, "transient", "Unavailable: 503", "aaaaaaaaaaaa")

        def die(number: int) -> None:
            key = f"{dead[-8:]}-{number}"
            record = record_id(SYSTEM, "note", key)
            claim = Claim(record, SYSTEM, "note", key, "1:a", "{}", 1, f"t-{key}", now, max_attempts=1, death=0)
            granted = self.records.claim(claim, now)
            assert isinstance(granted, Granted)
            (made,) = read_event(event(record_of(body(idempotency_key=key), key)))
            queue.dead_letter(made, json.dumps({"reason": "transient", "signature": "aaaaaaaaaaaa", "death": 1}))
            self.records.bury(granted.hold, 1, failure, now)

        with side_by_side() as mapper:
            list(mapper(die, range(count)))
        return source, dead

    def one_by_one(self, count: int, travels: float) -> Measured:
        """The usual way."""
        source, dead = self.letters(count)
        sqs, calls = client("sqs"), Calls(travels)
        calls.of(sqs)
        begun, done = time.monotonic(), 0
        while messages := sqs.receive_message(
            QueueUrl=dead, MaxNumberOfMessages=1, MessageAttributeNames=["All"], AttributeNames=["All"]
        ).get("Messages"):
            (message,) = messages
            attributes = message.get("MessageAttributes", {})
            sqs.send_message(QueueUrl=source, MessageBody=message["Body"], MessageAttributes=attributes)
            sqs.delete_message(QueueUrl=dead, ReceiptHandle=message["ReceiptHandle"])
            done += 1
        assert done == count
        return Measured((time.monotonic() - begun) / count, calls.number / count)

    def replay(self, count: int, travels: float) -> Measured:
        """Ours, with every letter's job made ready."""
        source, dead = self.letters(count)
        sqs, calls, operator = client("sqs"), Calls(travels), self.database.operator(self.clock)
        dynamodb = client("dynamodb")
        calls.of(sqs, dynamodb)
        operator = type(operator)(dynamodb, operator.table, self.clock, operator.random)
        with side_by_side() as mapper:
            desk = Desk("notes", SqsDeadLetters(sqs, dead, source, wait=0), operator, self.clock, mapper)
            begun = time.monotonic()
            report = Replay(desk, Selection(everything=True), Care(canary=0, watches=False, rate=None), ME).run()
            seconds = time.monotonic() - begun
        assert report.fates[Fate.REPLAYED] == count, report.fates
        return Measured(seconds / count, calls.number / count)


@contextlib.contextmanager
def stand_in() -> Iterator[None]:
    """The stand-in of AWS in processes of its own; nothing of the caller's AWS settings is used."""
    before = dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="tahan-", ignore_cleanup_errors=True) as folder, Children() as children:
        valkey = Valkey(children, Path(folder) / "valkey")
        valkey.start()
        standin = start_standin(children, Path(folder) / "standin", valkey, lambda _: None)
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            del os.environ[name]
        os.environ.update(CREDENTIALS, AWS_ENDPOINT_URL=standin.endpoint)
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)


def replay_speed(out: Console, letters: int = LETTERS) -> None:
    """Measure both ways in turn, next door and where calls travel, and show the medians.

    Raises:
        AssertionError: ours is not eight times as fast where calls travel, or takes more than an eighth of the calls.
    """
    table = Table(title=f"Replaying {letters} letters, medians", title_justify="left")
    for column in ("a call travels", "way", "ms a letter", "calls a letter", "letters a second", "ratio"):
        table.add_column(column, justify="left" if column == "way" else "right")
    ratios: dict[float, float] = {}
    calls = 0.0
    with stand_in():
        measured_at = {travels: _rounds(letters, travels) for travels in track(TRAVELS, transient=True)}
    for travels, rounds in measured_at.items():
        ratios[travels] = median(usual.seconds / ours.seconds for usual, ours in rounds)
        calls = median(usual.calls / ours.calls for usual, ours in rounds)
        for place, way in enumerate(("receive, send, delete", "tahan dlq replay")):
            seconds = median(each[place].seconds for each in rounds)
            table.add_row(
                f"{travels * 1000:.0f} ms",
                way,
                f"{seconds * 1000:.2f}",
                f"{median(each[place].calls for each in rounds):.2f}",
                f"{1 / seconds:.0f}",
                f"{ratios[travels]:.1f}" if place else "",
            )
    out.print(table)
    assert calls >= LEAST, f"an {calls:.1f}th of the calls, and not an {LEAST:.0f}th"
    slowest = min(ratios[travels] for travels in FAR)
    assert slowest >= LEAST, f"{slowest:.1f} times as fast, and not {LEAST:.0f}"


def _rounds(letters: int, travels: float) -> list[tuple[Measured, Measured]]:
    bench = Bench()
    return [(bench.one_by_one(letters, travels), bench.replay(letters, travels)) for _ in range(TIMES)]
