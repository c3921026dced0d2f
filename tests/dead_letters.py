"""A worker whose jobs die of causes that can be repaired, its queues in memory, and the desk: time passes where somebody waits."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from ops.letters.desk import Desk
from ops.letters.replay import Care, Replay
from ops.letters.selection import Selection
from shared.backends.memory.dead_letters import MemoryDeadLetters
from shared.backends.memory.operator_records import MemoryOperatorRecords
from shared.backends.memory.queue import MemoryQueue
from shared.errors import DeadLetter
from shared.job_record import SYSTEM, Status, record_id
from shared.producer import Outgoing
from shared.worker import Worker
from tests.operated import ME
from tests.world import Context, FakeClock, Note, World, body, event, note_job

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ops.letters.report import Report
    from shared.backends.memory.database import MemoryDatabase
    from shared.job_record import JobView
    from shared.unit_of_work import UnitOfWork


@dataclass
class WorkingClock(FakeClock):
    """While somebody sleeps, others work."""

    meanwhile: Callable[[], object] | None = None
    _is_inside: bool = False

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        if self.meanwhile is not None and not self._is_inside:
            self._is_inside = True
            self.meanwhile()
            self._is_inside = False


@dataclass
class House:
    """One worker, and the desk of its dead letters."""

    fifo: bool = False
    broken: set[str] = field(default_factory=set)
    effects: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.clock = WorkingClock()
        self.queue = MemoryQueue(self.clock, timedelta(seconds=30), max_receives=10, fifo=self.fifo)
        self.ran: list[str] = []
        note = note_job(self._handle)
        self.world = World(Worker("notes", jobs=(note,), fifo=self.fifo), self.clock)
        self.database: MemoryDatabase = self.world.database
        self.world.queue = self.queue
        self.letters = MemoryDeadLetters(self.queue)
        self.operator = MemoryOperatorRecords(self.database, self.clock)
        self.clock.meanwhile = self.work_a_little

    def _handle(self, payload: Note, work: UnitOfWork) -> object:
        del work
        self.ran.append(payload.thing)
        if payload.text in self.broken:
            raise DeadLetter(payload.text)
        self.effects[payload.thing] += 1
        return {}

    def send(self, *names: str, cause: str = "fine", group: str | None = None, **envelope: Any) -> None:
        """Put jobs on the queue; they die while their cause is broken."""
        for name in names:
            text = body(idempotency_key=name, payload={"thing": name, "text": cause}, **envelope)
            self.queue.send([Outgoing(text, {"tenant": "t1"}, group=group, deduplication=name)])

    def send_raw(self, *texts: str) -> None:
        """Put whatever on the queue."""
        self.queue.send([Outgoing(text) for text in texts])

    def work_a_little(self) -> bool:
        """Lambda and the consumer: one batch; give whether there was one."""
        records = self.queue.receive()
        if not records:
            return False
        answer = self.world.handle(event(*records), Context(timedelta(seconds=60)))
        failed = {failure["itemIdentifier"] for failure in answer["batchItemFailures"]}
        for record in records:
            if record["messageId"] not in failed:
                self.queue.delete(record["receiptHandle"])
        return True

    def work(self) -> None:
        """Until the queue is empty, with time passing."""
        while self.queue.messages:
            if not self.work_a_little():
                self.clock.pass_(timedelta(seconds=5))

    @property
    def desk(self) -> Desk:
        return Desk("notes", self.letters, self.operator, self.clock)

    def replaying(self, selection: Selection | None = None, **care: Any) -> Replay:
        chosen = selection or Selection(everything=True)
        return Replay(self.desk, chosen, Care(**{"rate": None, **care}), ME)

    def replay(self, selection: Selection | None = None, **care: Any) -> Report:
        return self.replaying(selection, **care).run()

    def view(self, name: str) -> JobView:
        return self.database.records[record_id(SYSTEM, "note", name)]

    def status(self, name: str) -> Status:
        return self.view(name).status

    def dead(self) -> list[str]:
        """The things of the letters, in order."""
        return [json.loads(letter.body)["payload"]["thing"] for letter in self.queue.dead]

    def visible(self) -> int:
        """How many letters anybody could receive at this moment."""
        now = self.clock.monotonic()
        return sum(letter.visible_at <= now for letter in self.queue.dead)

    def marks(self) -> Mapping[str, Any]:
        """The dead-letter attribute of each message on the queue, by its thing."""
        return {
            json.loads(message.body)["payload"]["thing"]: json.loads(
                message.attributes["tahan.dead-letter"]["StringValue"]
            )
            for message in self.queue.messages.values()
        }
