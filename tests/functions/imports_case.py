"""An import in memory: its file, its worker, and the messages between its jobs until nothing is left."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from functions import imports
from shared.job_record import SYSTEM, record_id
from tests.world import FakeClock, World

if TYPE_CHECKING:
    from shared.job_record import JobView
    from shared.outcome import Outcome

HEADER = "sku,name,price,stock\n"


def message(source: str, key: str = "k") -> str:
    return json.dumps({"job_type": "import-data", "idempotency_key": key, "payload": {"source": source}})


def rows(count: int, *, bad_every: int = 0, first: int = 0) -> str:
    """So many rows of CSV; every so many-th has no price."""
    return "".join(
        f"sku-{number},Product {number},{'' if bad_every and (number + 1) % bad_every == 0 else '9.99'},{number}\n"
        for number in range(first, first + count)
    )


@dataclass
class Case:
    """A file to be imported."""

    source: str
    text: str | bytes
    relayed: set[str] = field(default_factory=set)
    counted: int = 0

    def __post_init__(self) -> None:
        self.clock = FakeClock()
        self.world = World(imports.WORKER, self.clock)
        self.put(self.text)

    def put(self, text: str | bytes) -> None:
        body = text.encode() if isinstance(text, str) else text
        self.world.files.files["imports", f"uploads/{self.source}"] = body

    @property
    def database(self) -> Any:
        return self.world.database

    def view(self) -> JobView:
        view: JobView = self.database.view(record_id(SYSTEM, "import-data", "k"))
        return view

    def result(self) -> dict[str, Any]:
        result: dict[str, Any] = json.loads(self.view().result or "{}")
        return result

    def messages(self) -> list[str]:
        fresh = [posting for posting in self.database.outbox.values() if posting.id not in self.relayed]
        self.relayed |= {posting.id for posting in fresh}
        return [posting.body for posting in fresh]

    def run(self, bodies: list[str] | None = None, dies: Any = ()) -> list[Outcome]:
        """Run it to its end; whoever raises one of `dies` is a process that is gone."""
        waiting = [message(self.source)] if bodies is None else bodies
        outcomes: list[Outcome] = []
        for _ in range(2000):
            if not waiting:
                ends = self.database.records.ends[self.counted :]
                self.counted += len(ends)
                if ends:
                    self.world.runtime.execution.attempts.counting.count(ends)
                waiting = self.messages()
            if not waiting:
                return outcomes
            body = waiting.pop(0)
            delivery = self.world.delivery(body)
            runtime = self.world.runtime
            acknowledged = False
            try:
                with runtime.keeper:
                    outcome = runtime.execution.execute(delivery, self.clock.now() + timedelta(minutes=6))
                    acknowledged = runtime.settlement.settle(delivery, outcome)
                    outcomes.append(outcome)
            except dies:
                pass
            if not acknowledged:
                waiting.append(body)
                self.clock.pass_(timedelta(minutes=7))
            waiting += self.messages()
        pytest.fail("not at rest")

    def written(self) -> list[dict[str, Any]]:
        """The rows in the table, in the order of their lines; each was written once."""
        found = []
        for (table, key), stored in self.database.items.items():
            assert (table, stored.version) == ("import-rows", 1)
            found.append({**stored.attributes, "line": int(key[1])})
        return sorted(found, key=lambda row: row["line"])

    def report(self) -> list[dict[str, Any]]:
        """The lines of the report."""
        name = self.result()["report"]
        if name is None:
            return []
        return [json.loads(line) for line in self.world.files.files["imports", name].splitlines()]
