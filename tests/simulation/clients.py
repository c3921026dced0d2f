"""Clients of the front door in a simulated run: they repeat themselves, lose answers, die, come back with old state, cancel.

They drive the product's own intake over faulty stores; what they saw is checked when all is at rest.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from shared.clock import Surroundings
from shared.errors import StoreUnavailable, Unavailable
from shared.intake.operation import FINAL, OperationStatus, record_of
from shared.intake.request import Intake, OtherPayloadForKey
from shared.job import JobTypes
from shared.job_record import Status
from tests.simulation.faults import Faulty
from tests.simulation.history import demand
from tests.simulation.jobs import SIM_WORKER, add
from tests.simulation.scheduler import Process, ProcessClock
from tests.world import START

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from tests.simulation.world import World

OWNERS = ("user-1", "user-2")
LATER = (None, None, None, 5.0, 600.0, 2000.0)  # seconds ahead for which a job is asked
ORDER = {
    OperationStatus.PENDING: 0,
    OperationStatus.RUNNING: 1,
    OperationStatus.RETRYING: 1,
    OperationStatus.DEAD_LETTERED: 2,
    **dict.fromkeys(FINAL, 2),
}


@dataclass
class Intent:
    """What a client wants done once, and what it was told.

    Attributes:
        told: operation ids of its 202s.
        seen: statuses, in the order in which one of its tabs saw them; one list a tab.
        cancelled: whether one of them was told that it is.
    """

    owner: str
    key: str
    account: str
    amount: int
    ahead: float | None
    cancels: bool
    told: set[str] = field(default_factory=set)
    seen: list[list[OperationStatus]] = field(default_factory=list)
    cancelled: bool = False

    @property
    def body(self) -> str:
        return json.dumps({"account": self.account, "amount": self.amount})

    @property
    def run_at(self) -> datetime | None:
        return None if self.ahead is None else START + timedelta(seconds=self.ahead)


class Clients:
    """The clients of a run."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.left = 0
        random = world.random
        self.intents = [
            Intent(
                owner := random.choice(OWNERS),
                f"intent-{number % 3}",  # two owners may use one key
                f"{owner}/intent-{number % 3}",
                random.randint(1, 9),
                random.choice(LATER),
                random.random() < 0.25,
            )
            for number in range(random.randint(1, 4))
        ]
        self.intents = list({(intent.owner, intent.key): intent for intent in self.intents}.values())

    @property
    def are_done(self) -> bool:
        """Whether every tab has seen its end."""
        return self.left == 0

    def begin(self) -> None:
        """Let each intent be pursued in one or two tabs at once."""
        for intent in self.intents:
            for tab in range(self.world.random.randint(1, 2)):
                self.left += 1
                self.world.spawn(f"{intent.account}-{tab}", lambda _, intent=intent: self._pursue(intent))

    def _pursue(self, intent: Intent) -> None:
        world, seen = self.world, list[OperationStatus]()
        intent.seen.append(seen)
        world.scheduler.sleep(world.random.uniform(0, 60))
        told = None
        while told is None or world.random.random() < 0.3:  # also after it was told: it resumes from old state
            told = (
                self._within(
                    intent, lambda door: door.accept(intent.owner, "add", intent.key, intent.body, run_at=intent.run_at)
                )
                or told
            )
            if told is not None:
                intent.told.add(told.operation.operation_id)
            world.scheduler.sleep(world.random.uniform(0.1, 20))
        name = told.operation.operation_id
        if intent.cancels:
            ended = self._within(intent, lambda door: door.cancel(intent.owner, name))
            if ended is not None and ended.status is OperationStatus.CANCELLED:
                intent.cancelled = True
        while not seen or seen[-1] not in FINAL | {OperationStatus.DEAD_LETTERED}:
            found = self._within(intent, lambda door: door.look(intent.owner, name))
            if found is not None:
                seen.append(found.status)
            demand(self._is_there(name), "I1", f"{name} is not there, though it was accepted")
            demand(self._is_strangers(intent, name), "I6", f"{name} is seen by another")
            world.scheduler.sleep(world.random.uniform(1, 120))
        self.left -= 1

    def _within(self, intent: Intent, ask: Callable[[Intake], Any]) -> Any:
        """Ask a front door's process; None if it died or the answer was lost."""
        world = self.world
        answers: list[Any] = []

        def go(process: Process) -> None:
            gone = StoreUnavailable("no answer")
            store: Any = Faulty(world.history, process, world.faults, gone)
            clock = ProcessClock(world.scheduler, process)
            here = Surroundings(clock, world.random, world.token)
            door = Intake(JobTypes.of(add), {"add": SIM_WORKER.name}, store, store, here)
            try:
                answers.append(ask(door))
            except Unavailable:
                answers.append(None)
            except OtherPayloadForKey:
                demand(holds=False, invariant="I3", detail=f"{intent} is told that it changed its payload")

        world.within(f"door-{intent.account}", go, answers)
        return answers[0] if answers else None

    def _is_there(self, name: str) -> bool:
        return record_of(name) in self.world.history.records

    def _is_strangers(self, intent: Intent, name: str) -> bool:
        view = self.world.history.records[record_of(name) or ""]
        return view.names["owner"] == intent.owner

    # What must hold in the end.

    def check(self) -> None:
        """Each intent is one operation, which ended; its effect is there once, or not at all.

        Raises:
            Violation: it does not hold.
        """
        for intent in self.intents:
            demand(len(intent.told) <= 1, "I2", f"{intent} is {len(intent.told)} operations")
            reopened = any((record_of(name) or "") in self.world.history.reopened for name in intent.told)
            for seen in intent.seen:
                places = [ORDER[status] for status in seen]
                demand(reopened or places == sorted(places), "I16", f"{intent} saw {seen}")
            for name in intent.told:
                self._check_end(intent, self.world.history.records[record_of(name) or ""].status)

    def _check_end(self, intent: Intent, status: Status) -> None:
        ends = {Status.COMPLETED, Status.CANCELLED, Status.DEAD_LETTERED}
        demand(status in ends, "I24", f"{intent} is {status}")
        demand(not intent.cancelled or status is Status.CANCELLED, "I16", f"{intent} was cancelled and is {status}")
        stored = self.world.history.items.get(("accounts", (intent.account,)))
        total = 0 if stored is None else stored.attributes["total"]
        expected = intent.amount if status is Status.COMPLETED else 0
        demand(total == expected, "I14", f"{intent} is {status}, its account holds {total}")
