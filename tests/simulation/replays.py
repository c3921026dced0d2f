"""An operator in a simulated run: replays all dead letters now and then, and dies at it as everybody does; and what must hold."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ops.letters.desk import Desk
from ops.letters.replay import Care, Replay
from ops.letters.selection import Selection
from shared.backends.memory.dead_letters import MemoryDeadLetters
from shared.backends.memory.operator_records import MemoryOperatorRecords
from shared.errors import Unavailable
from shared.job_record import SYSTEM, record_id
from tests.simulation.faults import Faulty
from tests.simulation.jobs import SIM_WORKER
from tests.simulation.scheduler import ProcessClock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shared.delivery import Delivery
    from shared.desk.dead_letter_queue import Copy
    from tests.simulation.scheduler import Process
    from tests.simulation.world import World

OPERATOR = "operator"


class Letters(MemoryDeadLetters):
    """The dead letters of a run; a letter that is deleted before a copy of it was sent is noted."""

    def __init__(self, world: World) -> None:
        super().__init__(world.queue)
        self.world = world
        self.copied: set[str] = set()

    def send(self, copies: Sequence[Copy]) -> Sequence[str]:
        self.copied |= {copy.body for copy in copies}
        return super().send(copies)

    def delete(self, letters: Sequence[Delivery]) -> frozenset[str]:
        for letter in letters:
            if letter.body not in self.copied and not self._is_rescued(letter):
                self.world.history.broken.append(("I25", f"deleted, and no copy of it was sent: {letter.body}"))
        return super().delete(letters)

    def _is_rescued(self, letter: Delivery) -> bool:
        """Whether the sweeper sent the job anew: its record was made ready, and who did so died before the copy was sent."""
        sent = json.loads(letter.body)
        name = record_id(SYSTEM, sent["job_type"], sent["idempotency_key"])
        return any(posting.startswith(f"rescue/{name}/") for posting in self.world.history.outbox)


class Records(MemoryOperatorRecords):
    """The job records as the operator changes them; each change is noted."""

    def reopen(self, asked: Any, now: Any) -> frozenset[str]:
        history: Any = self.database
        before = {each.seen.record: history.records.get(each.seen.record) for each in asked}
        done = super().reopen(asked, now)
        for record, view in before.items():
            history._note(record, view)
            if view != history.records.get(record):
                history.reopened.setdefault(record, []).append(history.clock.monotonic())
        return done


class Replays:
    """The operator of a run."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.left = world.random.choice((0, 0, 2, 4))
        self.letters = Letters(world)

    def begin(self) -> None:
        """Let the operator look."""
        self.world.spawn(OPERATOR, self._operate)

    def _operate(self, here: Process) -> None:
        world, random = self.world, self.world.random
        while self.left:
            world.scheduler.sleep(random.uniform(10, 500))
            care = Care(
                canary=random.choice((0, 1)), watches=random.choice((False, True)), rate=random.choice((None, 1.0))
            )
            ended: list[bool] = []

            def go(process: Process, care: Care = care, ended: list[bool] = ended) -> None:
                gone = Unavailable("no answer", dependency="aws")
                clock = ProcessClock(world.scheduler, process)
                letters: Any = Faulty(self.letters, process, world.faults, gone)
                records: Any = Faulty(Records(world.history, clock), process, world.faults, gone)
                letters.fifo = False
                try:
                    Replay(
                        Desk(SIM_WORKER.name, letters, records, clock), Selection(everything=True), care, OPERATOR
                    ).run()
                except Unavailable:
                    world.faults.fired["replay broke off"] += 1
                else:
                    world.faults.fired["replay"] += 1
                finally:
                    ended.append(True)

            world.within(here.name, go, ended)
            self.left -= 1
