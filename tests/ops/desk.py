"""The command line at a desk of memory: what it would send, what it sees, what it says."""

from __future__ import annotations

import contextlib
import io
import json
from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING, Any

from rich.console import Console

from functions.registry import WORKERS
from ops.cli import main
from ops.exits import CommandError, Exit
from ops.jobs.job_records import Seen, Some
from ops.stack.deployed import Deployed
from ops.stack.running import Depth, Receiving
from ops.tools import Tools
from shared.backends.memory.brakes import MemoryBrakes, MemoryMappings
from shared.backends.memory.database import MemoryDatabase
from shared.backends.memory.dead_letters import MemoryDeadLetters
from shared.backends.memory.operator_records import MemoryOperatorRecords
from shared.backends.memory.owned_jobs import MemoryOwnedJobs
from shared.backends.memory.queue import MemoryQueue
from shared.errors import Unavailable
from shared.producer import Producer
from tests.operated import ME, outputs_of
from tests.world import FakeClock

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from typing import TextIO

    from shared.desk.dead_letter_queue import Redrive
    from shared.producer import NotTaken, Outgoing

OUTPUTS = outputs_of(
    "jobs",
    "audit",
    {worker.name: f"https://sqs/{worker.name}" for worker in WORKERS},
    {worker.name: f"https://sqs/{worker.name}-dead" for worker in WORKERS},
    {worker.name: worker.max_concurrency for worker in WORKERS}.__getitem__,
)


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

    def some(self, wanted: Any, most: int, after: str | None = None) -> Some:
        names = sorted(record for record in self.records if after is None or record > after)
        jobs = [seen for name in names if (seen := self.look(name)) is not None and wanted(seen.view)]
        return Some(tuple(jobs[:most]), len(names), jobs[most - 1].view.record if len(jobs) > most else None)


class Looked:
    """What runs, as a test has it."""

    def __init__(self) -> None:
        self.depths: dict[str, Depth] = {}
        self.in_flight: list[int] = []
        self.states: dict[str, Receiving] = {}
        self.numbers: Any = {}
        self.gates: Any = {}
        self.locks: list[dict[str, Any]] = []
        self.asked: list[Any] = []
        self.shares: dict[str, dict[str, float]] = {}
        self.flow: Any = {}
        self.ringing: Any = []

    def depth(self, worker: str) -> Depth:
        depth = self.depths.get(worker, Depth(0, 0, 0, 0))
        return replace(depth, in_flight=self.in_flight.pop(0)) if self.in_flight else depth

    def receiving(self, worker: str) -> Receiving:
        return self.states.get(worker, Receiving("Enabled", 5))

    def edges(self, now: Any) -> Any:
        return given(self.flow)

    def alarms(self) -> Any:
        return given(self.ringing)

    def weights(self, function: str) -> Any:
        return self.shares.get(function, {})

    def measured(self, workers: Any, now: Any) -> Any:
        return given(self.numbers)

    def ask_lookout(self, question: Any) -> Any:
        self.asked.append(question)
        given(self.gates)
        lock = next((each for each in self.locks if each["key"] == question.get("key")), None)
        return {"gates": self.gates, "locks": self.locks, "complete": not self.locks, "lock": lock}


def given(answer: Any) -> Any:
    """An answer, or the error that stands for it."""
    if isinstance(answer, Exception):
        raise answer
    return answer


@dataclass
class Desk:
    """One command after another on one stack."""

    stdin: str = ""
    refuses: NotTaken | Exception | None = None
    sent: list[tuple[str, Outgoing]] = field(default_factory=list)

    given: TextIO | None = None  # in place of `stdin`
    typed: str = ""  # in the editor
    terminal: bool = False  # whether people look at `err`

    def __post_init__(self) -> None:
        self.clock = FakeClock()
        self.queues = {url: MemoryQueue(self.clock) for name, url in OUTPUTS.items() if name.startswith("Queue")}
        self.audit: list[dict[str, Any]] = []
        self.audit_is_gone = False
        self.outputs = dict(OUTPUTS)
        self.parameters: dict[str, str] = {}
        self.tags: dict[str, str] = {}
        self.stack_status = "UPDATE_COMPLETE"
        self.token = "0123456789abcdef" * 2
        self.redrive: Redrive | None = None
        self.brakes, self.mapped = MemoryBrakes(), MemoryMappings()
        self.running = Looked()
        self.edited: list[str] = []
        self.jobs = Memory(self.clock)
        self.door: dict[str | None, int] = {None: 401, "token": 200}
        self.doors: list[str] = []
        self.templates: dict[str, Any] = {}
        self.assemblies: dict[str, Path] = {}
        self.out, self.err = "", ""

    def run(self, *words: str) -> int:
        """Give the exit status; `out` and `err` are what was written by this command."""
        out, err = (
            Console(file=io.StringIO(), width=200, highlight=False, force_terminal=terminal)
            for terminal in (False, self.terminal)
        )
        status = main(words, self.tools(out, err))
        self.out, self.err = (str(console.file.getvalue()) for console in (out, err))  # type: ignore[attr-defined]
        return status

    def tools(self, out: Console, err: Console) -> Tools:
        """The tools over this desk's stores."""
        return Tools(
            out=out,
            err=err,
            stdin=io.StringIO(self.stdin) if self.given is None else self.given,
            clock=self.clock,
            tokens=lambda: self.token,
            deployed=self._deployed,
            producer=lambda url: Producer(self._queue(url), self.clock, Random(1), lambda: "f" * 32),  # noqa: S311 - repeatable
            jobs=lambda _: self.jobs,
            owned=lambda _: MemoryOwnedJobs(self.jobs),
            dead_letters=lambda source, _: MemoryDeadLetters(self.queues[source], self.redrive),
            operator=lambda _: MemoryOperatorRecords(self.jobs, self.clock),
            audit=lambda _: self,
            caller=lambda: ME,
            side_by_side=lambda: contextlib.nullcontext(map),
            edit=self._edit,
            brakes=lambda _: self.brakes,
            mappings=self._mappings,
            running=lambda _: self.running,
            template=lambda name: self.templates[name],
            assembly=self._assembly,
            http_status=self._http_status,
        )

    def _assembly(self, stage: str) -> Path:
        if stage not in self.assemblies:
            message = f"stage {stage!r} is not in cdk.json."
            raise CommandError(message, Exit.REFUSED)
        return self.assemblies[stage]

    def _http_status(self, url: str, token: str | None) -> int:
        self.doors.append(url)
        if token not in self.door:
            message = "The front door gave no answer."
            raise CommandError(message)
        return self.door[token]

    def _mappings(self, mapped: Any) -> MemoryMappings:
        assert all(each.uuid == f"uuid-{worker}" for worker, each in mapped.items())
        return self.mapped

    def write(self, line: str) -> None:
        """Keep a line of the audit."""
        if self.audit_is_gone:
            message = "logs gave no answer."
            raise Unavailable(message, dependency="logs")
        self.audit.append(json.loads(line))

    def _edit(self, text: str) -> str:
        self.edited.append(text)
        return self.typed

    @property
    def json(self) -> dict[str, Any]:
        """What was written for programs: one line."""
        (line,) = self.out.splitlines()
        found: dict[str, Any] = json.loads(line)
        return found

    def _deployed(self, name: str) -> Deployed:
        if name != "tahan-dev":
            message = f"There is no stack {name!r}."
            raise CommandError(message)
        return Deployed(name, self.outputs, self.parameters, self.tags, self.stack_status)

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
