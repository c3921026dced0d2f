"""Jobs that are split, in a run: their messages, who counts their parts and loses some ends, who cancels them, and the checks."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from shared.errors import StoreUnavailable, Unavailable
from shared.job_record import SYSTEM, JobView, Status, record_id
from shared.parts import STATES
from shared.rounds.counting import Counting
from tests.simulation.faults import Faulty
from tests.simulation.jobs import ROTTEN, SIM_WORKER, harvest
from tests.simulation.scheduler import Process, ProcessClock

if TYPE_CHECKING:
    from tests.simulation.world import World


@dataclass
class Splits:
    """The parents of a run."""

    world: World
    rows: dict[str, int] = field(default_factory=dict)
    counted: int = 0
    lost: set[str] = field(default_factory=set)  # parents of whom the stream lost an end
    cancelled: set[str] = field(default_factory=set)

    def begin(self) -> None:
        """Let the stream be read, and somebody cancel now and then."""
        self.world.spawn("counter", self._count)
        self.world.spawn("canceller", self._cancel)

    def send(self) -> None:
        """Parents, each of a field of its own."""
        random = self.world.random
        for number in range(random.randint(0, 2)):
            name = f"field-{number}"
            self.rows[name] = random.choice((0, 1, 3, 6))
            self.world.send("harvest", f"harvest/{name}", {"field": name, "rows": self.rows[name]})

    def record(self, name: str) -> str:
        """The parent's record."""
        return record_id(SYSTEM, harvest.name, f"harvest/{name}")

    def parts_of(self, record: str) -> list[JobView]:
        """The parts of a parent."""
        views = self.world.history.records.values()
        return [view for view in views if view.place is not None and view.place.parent == record]

    def _count(self, here: Process) -> None:
        """The stream: gives the ends to the counter until they go through; now and then it loses some."""
        world = self.world
        while True:
            world.scheduler.sleep(world.random.uniform(0.2, 5.0))
            ends = world.history.records.ends[self.counted :]
            if not ends:
                continue
            if world.faults.happens("unstreamed"):
                self.lost |= {end.place.parent for end in ends}
                self.counted += len(ends)
                continue
            ended: list[bool] = []
            world.within(here.name, partial(self._count_once, ends, ended), ended)
            self.counted += len(ends) if ended == [True] else 0

    def _count_once(self, ends: list[Any], ended: list[bool], process: Process) -> None:
        world = self.world
        gone = StoreUnavailable("no answer")
        parts: Any = Faulty(world.history, process, world.faults, gone)
        workers = {job.name: SIM_WORKER.name for job in SIM_WORKER.jobs}
        try:
            Counting(parts, workers, ProcessClock(world.scheduler, process)).count(ends)
        except Unavailable:
            ended.append(False)
        else:
            ended.append(True)

    def _cancel(self, here: Process) -> None:
        """Ask a parent to end, in some of the runs."""
        world = self.world
        if world.random.random() < 2 / 3:
            return
        while True:
            world.scheduler.sleep(world.random.uniform(5.0, 120.0))
            for name in self.rows:
                view = world.history.cancel(self.record(name), SYSTEM, ProcessClock(world.scheduler, here).now())
                if view is not None and (view.cancelling or view.status is Status.CANCELLED):
                    self.cancelled.add(name)

    def saw_the_end_of(self, record: str) -> str | None:
        """What is wrong with a parent's end, at its moment."""
        early = [view for view in self.parts_of(record) if view.status not in STATES and not view.death]
        return f"{record} has ended before its parts {early}" if early else None

    def check(self, demand: Any) -> None:
        """Each parent ended once, after all of its parts, and tells what became of them."""
        for name, rows in self.rows.items():
            view = self.world.history.records.get(self.record(name))
            if view is None or view.status not in {Status.COMPLETED, Status.CANCELLED}:
                continue  # a dead letter, which other checks look at
            parts = self.parts_of(view.record)
            baskets = {
                key[0]: stored.version
                for (table, key), stored in self.world.history.items.items()
                if table == "baskets" and key[0].startswith(f"{name}/")
            }
            demand(set(baskets.values()) <= {1}, "I14", f"{name} was done twice: {baskets}")
            demand(all(part.status in STATES for part in parts), "R5.2", f"{view} has ended, and not {parts}")
            if view.status is Status.COMPLETED:
                demand(len(parts) == rows, "R5.2", f"{name} has {len(parts)} parts of {rows}")
                demand(f"{name}/all" in baskets, "R5.2", f"{name} is done without its end: {baskets}")
                demand(json.loads(view.result or "{}").get("ended") == rows, "R5.2", view)
            else:
                demand(name in self.cancelled, "R1.6", f"{name} was cancelled by nobody")
                demand(f"{name}/all" not in baskets, "R1.6", f"{name} was cancelled and done: {baskets}")
            self._check_parts(view, parts, baskets, demand)

    def _check_parts(self, view: JobView, parts: list[JobView], baskets: dict[str, int], demand: Any) -> None:
        for part in parts:
            payload = json.loads(self.world.history.payloads[part.record])
            name = f"{payload['field']}/{payload['row']}"
            done = part.status is Status.COMPLETED
            demand(done == (name in baskets), "I20", f"{part} and {baskets}")
            demand(not done or payload["row"] % ROTTEN, "R5.2", f"{part} cannot be done")
        counts = {state: sum(part.status is state for part in parts) for state in STATES}
        tally = view.tally
        if view.record in self.lost or tally is None:
            demand(tally is not None or not parts or view.record in self.lost, "R5.2", f"{view} tells no tally")
            return
        told = (tally.succeeded, tally.failed, tally.cancelled, tally.dead_lettered)
        demand(told == tuple(counts.values()), "R5.2", f"{view.record} tells {tally}, and has {counts}")
