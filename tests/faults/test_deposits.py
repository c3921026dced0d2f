"""A job whose payload, message and result are all too large to travel, whatever exchange dies, loses its reply or fails: one effect.

As for a capture (see test_every_step.py): a first run counts the exchanges, the bucket's among them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from shared.backends.memory.database import MemoryDatabase
from shared.backends.memory.files import MemoryFiles
from shared.errors import StoreUnavailable
from shared.job_record import Status
from shared.wire.deposits import INLINE_BYTES, Deposits, Mark
from tests.faults import mortal
from tests.faults.mortal import Died, Fault, Life, Mortal
from tests.modes import CACHES, Mode, asked_for
from tests.world import THINGS, FakeClock, Note, NotingQueue, World, body

if TYPE_CHECKING:
    from shared.unit_of_work import UnitOfWork

LARGE = "x" * INLINE_BYTES


def handler(payload: Note, work: UnitOfWork) -> object:
    work.create(THINGS, id=payload.thing, length=len(payload.text))
    if payload.thing == "first":
        work.enqueue(World.of().worker.jobs[0].message(Note(thing="second", text=f"second {LARGE}"), "second"))
    return {"text": f"{payload.thing} {LARGE}"}


@dataclass
class Case:
    """One message, and the one that its job sends, delivered again until both are acknowledged."""

    mode: Mode

    def __post_init__(self) -> None:
        self.world = World.of(handler)
        self.clock: FakeClock = self.world.clock
        self.database = MemoryDatabase(self.clock)
        self.cache = CACHES[self.mode](self.clock)
        self.queue = NotingQueue()
        self.files = MemoryFiles()
        payload = json.dumps({"thing": "first", "text": LARGE})
        mark = Mark.read(Deposits(self.files).fit(payload))
        assert mark is not None
        self.body = body(format=3, payload=..., deposit={"sha256": mark.sha256, "bytes": mark.size})

    def run_to_the_end(self, lives: list[Life]) -> None:
        waiting, relayed = [self.body], set[str]()
        for turn in range(40):
            life = lives[turn] if turn < len(lives) else Life()
            self.world.database = mortal.database(self.database, life)
            self.world.cache = mortal.cache(self.cache, life)
            self.world.queue = mortal.queue(self.queue, life)
            self.world.files = Mortal(self.files, life, "files", StoreUnavailable("no answer"))
            text = waiting.pop(0)
            try:
                _, acknowledged = self.world.run(text)
            except Died:
                acknowledged = False
            if not acknowledged:
                waiting.append(text)
            fresh = [posting for posting in self.database.outbox.values() if posting.id not in relayed]
            relayed |= {posting.id for posting in fresh}
            waiting += [posting.body for posting in fresh]
            self.clock.pass_(timedelta(minutes=16))
            if not waiting:
                return
        pytest.fail("not at rest")

    def check(self) -> None:
        views = list(self.database.records.values())
        assert [view.status for view in views] == [Status.COMPLETED] * 2
        things = {
            key[0]: (stored.version, stored.attributes["length"]) for (_, key), stored in self.database.items.items()
        }
        assert things == {"first": (1, len(LARGE)), "second": (1, len(LARGE) + 7)}
        deposits = Deposits(self.files)
        results = {json.loads(deposits.whole(view.result or ""))["text"].partition(" ")[0] for view in views}
        assert results == {"first", "second"}
        assert not self.queue.dead


@pytest.mark.parametrize("mode", asked_for())
def test_large_texts_arrive_whole_and_once_whatever_fails(mode: Mode) -> None:
    first, life = Case(mode), Life()
    first.run_to_the_end([life])
    first.check()
    assert {"files.look", "files.read", "files.write"} <= set(life.steps)
    for at in range(len(life.steps)):
        for fault in Fault:
            for times in (1, 2):
                case, lives = Case(mode), [Life(at, fault) for _ in range(times)]
                case.run_to_the_end(lives)
                assert lives[0].fired
                case.check()
