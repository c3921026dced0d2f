"""A long job, whatever exchange of whichever of its steps dies, loses its reply or fails, once or twice in a row.

As for a capture (see test_every_step.py): a first run counts the exchanges, and the end is always the same.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest

from shared.backends.memory.database import MemoryDatabase
from shared.caching.lives import Lives
from shared.caching.store import Loaded, Miss
from shared.job_record import Status
from shared.worker import Worker
from tests.faults import mortal
from tests.faults.jobs import YEARS, age
from tests.faults.mortal import Died, Fault, Life
from tests.modes import CACHES, Mode, asked_for
from tests.world import FakeClock, NotingQueue, World

DAY = timedelta(days=1)
BODY = json.dumps({"job_type": "age", "idempotency_key": "k", "payload": {"cask": "c"}})
# Without a heartbeat, whose thread would come in between.
AGE = replace(age, heartbeat=None, timeout=timedelta(seconds=10))
WORKER = Worker("casks", jobs=(AGE,))


@dataclass
class Case:
    """One message, delivered again until it is acknowledged; each year of the cask was cached before."""

    mode: Mode

    def __post_init__(self) -> None:
        self.clock = FakeClock()
        self.database = MemoryDatabase(self.clock)
        self.cache = CACHES[self.mode](self.clock)
        self.queue = NotingQueue()
        self.world = World(WORKER, self.clock)
        for year in range(YEARS):
            assert isinstance(self.cache.fetch(f"cask/c/{year}", "view", "reader", DAY, None), Miss)
            self.cache.store(f"cask/c/{year}", "view", "reader", Loaded("as it was before"), Lives(DAY, DAY))

    def run_to_the_end(self, lives: list[Life]) -> None:
        for turn in range(40):
            life = lives[turn] if turn < len(lives) else Life()
            self.world.database = mortal.database(self.database, life)
            self.world.cache = mortal.cache(self.cache, life)
            self.world.queue = mortal.queue(self.queue, life)
            try:
                _, acknowledged = self.world.run(BODY)
            except Died:
                acknowledged = False
            self.clock.pass_(timedelta(minutes=16))
            if acknowledged:
                return
        pytest.fail("not at rest")

    def check(self) -> None:
        (view,) = self.database.records.values()
        assert (view.status, view.checkpoints) == (Status.COMPLETED, YEARS)
        assert view.attempts <= age.retry.max_attempts
        written = {key[0]: stored.version for (_, key), stored in self.database.items.items()}
        assert written == {f"c/{year}": 1 for year in range(YEARS)}, "each year once"
        for year in range(YEARS):
            assert isinstance(self.cache.fetch(f"cask/c/{year}", "view", "r", DAY, None), Miss), "no old value is read"
        assert not self.queue.dead, "nothing died"


@pytest.mark.parametrize("mode", asked_for())
def test_i20_each_step_has_one_effect_whatever_fails(mode: Mode) -> None:
    first, life = Case(mode), Life()
    first.run_to_the_end([life])
    first.check()
    assert life.steps.count("database.checkpoint") == YEARS
    for at in range(len(life.steps)):
        for fault in Fault:
            for times in (1, 2):
                case, lives = Case(mode), [Life(at, fault) for _ in range(times)]
                case.run_to_the_end(lives)
                assert lives[0].fired
                case.check()


def test_i23_what_dies_at_each_of_its_attempts_is_dead_lettered_with_what_it_has_committed() -> None:
    case = Case(Mode.NORMAL)
    first = Life()
    Case(Mode.NORMAL).run_to_the_end([first])
    # The first attempt dies at the second year's end, and each later one right after its claim.
    second = [place for place, step in enumerate(first.steps) if step == "database.checkpoint"][1]
    after_claim = first.steps.index("database.claim")
    lives = [Life(second, Fault.DIES_AFTER)]
    lives += [Life(after_claim, Fault.DIES_AFTER) for _ in range(AGE.retry.max_attempts)]
    case.run_to_the_end(lives)
    (view,) = case.database.records.values()
    assert (view.status, view.checkpoints) == (Status.DEAD_LETTERED, 2)
    assert len(case.queue.dead) == 1
