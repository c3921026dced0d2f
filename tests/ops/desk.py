"""The command line at a desk of memory: what it would send, what it sees, what it says."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

from rich.console import Console

from ops.cli import main
from ops.deployed import Deployed
from ops.exits import CommandError
from ops.jobs import Seen
from ops.tools import Tools
from shared.backends.memory_database import MemoryDatabase
from shared.backends.memory_owned_jobs import MemoryOwnedJobs
from shared.producer import Producer
from tests.world import FakeClock

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from shared.producer import NotTaken, Outgoing

OUTPUTS = {
    "JobsTable": "jobs",
    "QueuePayments": "https://sqs/payments",
    "QueueUsers": "https://sqs/users",
    "QueueInventory": "https://sqs/inventory",
    "QueueInvoices": "https://sqs/invoices",
    "QueueNotifications": "https://sqs/notifications",
}


class Memory(MemoryDatabase):
    """Job records, as the operator looks at them."""

    looks: int = 0
    on_look: Callable[[int], None] | None = None

    def look(self, record: str) -> Seen | None:
        self.looks += 1
        if self.on_look is not None:
            self.on_look(self.looks)
        view = self.view(record)
        return None if view is None else Seen(view, self.accepted_at.get(record))


@dataclass
class Desk:
    """One command after another on one stack."""

    stdin: str = ""
    refuses: NotTaken | Exception | None = None
    sent: list[tuple[str, Outgoing]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.clock = FakeClock()
        self.jobs = Memory(self.clock)
        self.out, self.err = "", ""

    def run(self, *words: str) -> int:
        """Give the exit status; `out` and `err` are what was written by this command."""
        out, err = (Console(file=io.StringIO(), width=200, highlight=False) for _ in range(2))
        tools = Tools(
            out=out,
            err=err,
            stdin=io.StringIO(self.stdin),
            clock=self.clock,
            tokens=lambda: "0123456789abcdef" * 2,
            deployed=self._deployed,
            producer=lambda url: Producer(self._queue(url), self.clock, Random(1), lambda: "f" * 32),  # noqa: S311 - repeatable
            jobs=lambda _: self.jobs,
            owned=lambda _: MemoryOwnedJobs(self.jobs),
        )
        status = main(words, tools)
        self.out, self.err = (str(console.file.getvalue()) for console in (out, err))  # type: ignore[attr-defined]
        return status

    @property
    def json(self) -> dict[str, Any]:
        """What was written for programs: one line."""
        (line,) = self.out.splitlines()
        found: dict[str, Any] = json.loads(line)
        return found

    @staticmethod
    def _deployed(name: str) -> Deployed:
        if name != "tahan-dev":
            message = f"There is no stack {name!r}."
            raise CommandError(message)
        return Deployed(name, OUTPUTS)

    def _queue(self, url: str) -> Any:
        desk = self

        class Queue:
            def send(self, batch: Sequence[Outgoing]) -> Sequence[str | NotTaken]:
                if isinstance(desk.refuses, Exception):
                    raise desk.refuses
                if desk.refuses is not None:
                    return [desk.refuses] * len(batch)
                desk.sent += [(url, message) for message in batch]
                return [f"message-{len(desk.sent)}"] * len(batch)

        return Queue()
