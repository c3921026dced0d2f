"""A calculation and its notice, whatever step of whichever delivery dies, loses its reply or fails: one effect, one notice.

A copy in the payload's first version is on the queue beside that in the second, as in every roll-out.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from functions import invoices, notifications
from functions.views.invoices import INVOICES, invoice_tag
from shared.backends.memory.database import MemoryDatabase
from shared.caching.lives import Lives
from shared.caching.store import Loaded, Miss
from shared.dependency import Reply
from shared.item import Stored
from shared.job_record import Status
from shared.tag import Version
from shared.wire.parsing import read_message
from tests.faults import mortal
from tests.faults.mortal import Died, Fault, Life
from tests.modes import CACHES, Mode, asked_for
from tests.world import FakeClock, NotingQueue, World

if TYPE_CHECKING:
    from shared.worker import Worker

DAY = timedelta(days=1)
LINE = {"unit_price": "0.10", "quantity": 3, "tax_rate": 0}
ITEM: Any = {"invoice_id": "i", "user_id": "ann", "status": "open", "currency": "EUR", "lines": [LINE]}
OLD = Loaded("as it was", Version(1))
COPIES = (
    {"job_type": "recalculate-invoice", "idempotency_key": "k", "payload": {"invoice": "i", "revision": 1}},
    {
        "job_type": "recalculate-invoice",
        "version": 2,
        "idempotency_key": "k",
        "payload": {"invoice_id": "i", "version": 1},
    },
)


@dataclass
class Service:
    """Sends one notice for each key."""

    sent: dict[str, Any] = field(default_factory=dict)

    def send(self, dependency: Any, method: str, path: str, *, body: Any, headers: Any, within: Any) -> Reply:
        self.sent.setdefault(headers["Idempotency-Key"], body)
        return Reply(201, {"notice_id": "n"})


class Case:
    """Both copies, and what they ask for, delivered again until each is acknowledged."""

    def __init__(self, mode: Mode) -> None:
        self.clock = FakeClock()
        self.database = MemoryDatabase(self.clock)
        self.cache = CACHES[mode](self.clock)
        self.queue = NotingQueue()
        self.service = Service()
        self.database.items[INVOICES.name, ("i",)] = Stored(ITEM, 1)
        self.cache.fetch(invoice_tag("i"), "ann", "reader", DAY, None)  # a reader that is still loading

    def deliver(self, worker: Worker, body: str, life: Life) -> bool:
        world = World(worker, self.clock)
        world.database = mortal.database(self.database, life)
        world.cache = mortal.cache(self.cache, life)
        world.queue = mortal.queue(self.queue, life)
        world.transport = mortal.transport(self.service, life)
        try:
            return world.run(body)[1]
        except Died:
            return False

    def run_to_the_end(self, first: Life, then: Life) -> None:
        """Deliver until nothing is left; the first delivery to each worker lives the life given."""
        lives = {invoices.WORKER.name: [first], notifications.WORKER.name: [then]}
        waiting: list[tuple[Worker, str]] = [(invoices.WORKER, json.dumps(copy)) for copy in COPIES]
        relayed: set[str] = set()
        for _ in range(40):
            worker, body = waiting.pop(0)
            mine = lives[worker.name]
            if not self.deliver(worker, body, mine.pop() if mine else Life()):
                waiting.append((worker, body))
            for posting in [p for p in self.database.outbox.values() if p.id not in relayed]:
                relayed.add(posting.id)
                waiting += [(notifications.WORKER, posting.body)] * 2  # at least once
            self.clock.pass_(timedelta(minutes=31))
            if not waiting:
                return
        pytest.fail(f"not at rest: {waiting}")

    def check(self) -> None:
        stored = self.database.items[INVOICES.name, ("i",)]
        assert (stored.version, stored.attributes["calculated"], stored.attributes["gross"]) == (2, 2, "0.30")
        told = {"user_id": "ann", "invoice_id": "i", "version": 2, "gross": "0.30", "currency": "EUR"}
        assert self.service.sent == {"invoice/i/2": told}
        assert {view.status for view in self.database.records.values()} == {Status.COMPLETED}
        assert [read_message(posting.body).job_type for posting in self.database.outbox.values()] == ["notify-invoice"]
        assert isinstance(self.cache.fetch(invoice_tag("i"), "ann", "r", DAY, None), Miss)
        assert not self.cache.store(invoice_tag("i"), "ann", "reader", OLD, Lives(DAY, DAY))
        assert not self.queue.dead


def steps(mode: Mode) -> tuple[int, int]:
    """How many steps the first delivery to each worker has when nothing fails."""
    first, then = Life(), Life()
    case = Case(mode)
    case.run_to_the_end(first, then)
    case.check()
    return len(first.steps), len(then.steps)


@pytest.mark.parametrize("mode", asked_for())
def test_r4_4_an_invoice_is_calculated_once_and_told_of_once_whatever_fails(mode: Mode) -> None:
    calculating, telling = steps(mode)
    assert calculating >= 3  # claim, read, commit at the least
    assert telling >= 4  # and the call
    for fault in Fault:
        for at in range(calculating):
            case, life = Case(mode), Life(at, fault)
            case.run_to_the_end(life, Life())
            assert life.fired
            case.check()
        for at in range(telling):
            case, life = Case(mode), Life(at, fault)
            case.run_to_the_end(Life(), life)
            assert life.fired
            case.check()
