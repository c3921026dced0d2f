"""A unit of work over memory stores, and what it commits."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from shared.backends.memory.database import MemoryDatabase
from shared.dependency import Dependency, Reply
from shared.item import Stored, Write
from shared.table import Table
from tests.world import THINGS, FakeClock, unit_of_work

SHOP = Dependency("shop", timeout=timedelta(seconds=5))
LINES = Table("lines", key="order", sort_key="line")
OTHER = Table("other", key="id")


class Case:
    """A unit of work over a memory database that holds one thing, at version 3."""

    def __init__(self, **options: Any) -> None:
        self.clock = FakeClock()
        self.database = MemoryDatabase(self.clock)
        self.database.items["things", ("a",)] = Stored({"id": "a", "text": "x"}, 3)
        self.calls: list[Any] = []
        uses = (THINGS.read_write, LINES.read_write, OTHER.read, SHOP)
        self.work = unit_of_work(self.answer, uses, self.database, **options)

    def writes(self) -> tuple[Write, ...]:
        return self.work.staged.writes

    def answer(self, *request: Any) -> Reply:
        self.calls.append(request)
        return Reply(200, {})
