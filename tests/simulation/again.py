"""Requests in a simulated run that share a key which is unique only while its job is active; and what must hold of them."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from shared.job_record import SYSTEM, Status, record_id
from tests.simulation.history import demand
from tests.simulation.jobs import refresh
from tests.world import START

if TYPE_CHECKING:
    from tests.simulation.scheduler import Process
    from tests.simulation.world import World

KEY = "page"
AHEAD = (0.0, 0.0, 0.0, 300.0)  # seconds by which a producer's clock may be ahead


class Requests:
    """The requests of a run: some for a job that is active, some after its end, each in up to three copies."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.left = world.random.randint(1, 4)
        self.made: dict[str, datetime] = {}
        self.begun: dict[str, float] = {}

    def begin(self) -> None:
        """Let them come, one after the other."""
        self.world.spawn("asking", self._ask)

    def _ask(self, here: Process) -> None:
        _ = here
        world, random = self.world, self.world.random
        while self.left:
            world.scheduler.sleep(random.choice((random.uniform(0, 5), random.uniform(5, 400))))
            name = f"request-{self.left}"
            self.begun[name] = world.scheduler.now
            self.made[name] = START + timedelta(seconds=world.scheduler.now + random.choice(AHEAD))
            body = json.dumps(
                {
                    "job_type": refresh.name,
                    "idempotency_key": KEY,
                    "job_id": name,
                    "enqueued_at": self.made[name].isoformat(),
                    "payload": {"page": KEY},
                }
            )
            world.bodies.append(body)
            world.send_copies(body)
            self.left -= 1

    def check(self) -> None:
        """No request ran twice, and none was left out: a run ended after it was made, or its dead letter tells of it.

        Raises:
            Violation: it does not hold.
        """
        history = self.world.history
        record = record_id(SYSTEM, refresh.name, KEY)
        ends = [view for name, view in history.changes if name == record and view.ended_at is not None]
        done = [view.job_id for view in ends if view.status is Status.COMPLETED]
        demand(len(done) == len(set(done)), "R1.1", f"a request ran twice: {done}")
        stored = history.items.get(("pages", (KEY,)))
        demand((0 if stored is None else stored.version) == len(done), "I14", f"{stored}, done are {done}")
        letters = {str(json.loads(letter.body).get("job_id")) for letter in self.world.queue.dead}
        for name, made in self.made.items():
            told = any(view.job_id == name or (view.ended_at is not None and view.ended_at >= made) for view in ends)
            # One whose producer's clock is ahead may have been made, in truth, while the job was active.
            told = told or any(moment >= self.begun[name] for moment in history.ends.get(record, ()))
            demand(told or name in letters, "R1.1", f"{name}, made at {made}, was left out: {ends}")
