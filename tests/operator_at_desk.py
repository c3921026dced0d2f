"""An operator with a page of `docs/runbooks` before them: types its commands, as they stand there, on a stack of the tests."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

from rich.console import Console

from functions.lookout import Lookout
from ops.cli import connected, main
from ops.exits import Exit
from ops.stack.deployed import Deployed
from shared.backends.aws import client
from shared.backends.dynamodb.brakes import DynamoDBBrakes
from shared.backends.memory.brakes import MemoryMappings
from shared.backends.redis.connection import Connection
from shared.backends.redis.gates import RedisGates
from shared.backends.redis.held_leases import RedisLeases
from shared.clock import SystemClock
from shared.rounds.brake_rounds import Controller
from shared.telemetry import Silent
from tests.operated import Letters, Looking, outputs_of
from tests.runbooks import Command, to_type

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from shared.worker import Worker
    from tests.stack import Stack

STACK = "tahan-test"
AUDIT = "tahan-test-audit"


class Clock(SystemClock):
    """The machine's clocks; while a command waits, the stack works."""

    def __init__(self, operator: Operator) -> None:
        self.operator = operator

    def sleep(self, seconds: float) -> None:
        super().sleep(min(seconds, 0.2))
        self.operator.work()


class Unmeasured(Looking):
    """A stack of which CloudWatch has nothing."""

    def measured(self, workers: Sequence[Worker], now: Any) -> Mapping[str, Mapping[str, float]]:
        return {}


class Operator:
    """One person, one page, one stack.

    Attributes:
        left: commands of the page that were not typed yet.
        told: all that the last command wrote.
    """

    def __init__(self, stack: Stack, page: str) -> None:
        self.stack, self.page = stack, page
        self.left = to_type(page)
        self.told = ""
        self.mapped = MemoryMappings()
        logs = client("logs")
        if not logs.describe_log_groups(logGroupNamePrefix=AUDIT)["logGroups"]:
            logs.create_log_group(logGroupName=AUDIT)
        settings = stack.settings
        redis = Connection(settings.cache_host, int(settings.cache_port), tls=False, cluster=False)
        brakes = DynamoDBBrakes(client("dynamodb"), settings.jobs_table)
        clock, gates = SystemClock(), RedisGates(redis)
        controller = Controller({}, gates, brakes, self.mapped, clock, Silent())
        self.lookout = Lookout(controller, gates, (), RedisLeases(redis))
        name = stack.worker.name
        queues, dead = ({name: urls[name]} for urls in (settings.queues, settings.dead_letter_queues))
        outputs = outputs_of(settings.jobs_table, AUDIT, queues, dead)
        self.deployed = Deployed(STACK, outputs)
        self.random = Random(1)  # noqa: S311 - repeatable

    def types(self, start: str, /, *, ends: Exit = Exit.DONE, **blanks: str) -> str:
        """Type the first command of the page that begins so, and has not been typed yet; give what it told.

        Raises:
            AssertionError: the page has none, or it ended otherwise.
        """
        found = next((each for each in self.left if each.text.startswith(start)), None)
        assert found is not None, f"{self.page} has no (other) command {start!r}"
        self.left.remove(found)
        return self.again(found, ends=ends, **blanks)

    def again(self, command: Command | str, /, *, ends: Exit = Exit.DONE, **blanks: str) -> str:
        """Type a command of the page once more, by how it begins."""
        if isinstance(command, str):
            command = next(each for each in to_type(self.page) if each.text.startswith(command))
        named = {"stack": STACK, "worker": self.stack.worker.name}
        words = command.words({**named, **{name.replace("_", " "): value for name, value in blanks.items()}})
        out = io.StringIO()
        console = Console(file=out, width=250, highlight=False)
        tools = replace(
            connected(),
            out=console,
            err=console,
            stdin=io.StringIO("y\n"),
            clock=Clock(self),
            deployed=lambda _: self.deployed,
            mappings=lambda _: self.mapped,
            dead_letters=lambda source, dead: Letters(
                client("sqs", read_seconds=10.0), dead, source, 0, traces_alone=True
            ),
            running=lambda deployed: Unmeasured(deployed, receives=self.receives, lookout=self.lookout.answer),
        )
        status = main([word for word in words if word != "--watch" or words[0] != "status"], tools)
        self.told = out.getvalue()
        assert status == ends, f"tahan {' '.join(words)} ended with {status}:\n{self.told}"
        return self.told

    def reads(self, start: str, /, **blanks: str) -> dict[str, Any]:
        """Type a command as a program would, and read what it answers."""
        command = next(each for each in to_type(self.page) if each.text.startswith(start))
        self.left = [each for each in self.left if each != command]
        told = self.again(Command(f"{command.text} --json"), ends=Exit.DONE, **blanks)
        (line,) = [line for line in told.splitlines() if line.startswith("{")]
        found: dict[str, Any] = json.loads(line)
        return found

    def skips(self, *starts: str) -> None:
        """Leave commands that the page offers for another trouble than this one."""
        for start in starts:
            found = [each for each in self.left if each.text.startswith(start)]
            assert found, f"{self.page} has no (other) command {start!r}"
            self.left = [each for each in self.left if each not in found]

    def work(self) -> None:
        """Let the stack do what waits, unless its worker is paused."""
        if self.receives(self.stack.worker.name):
            self.stack.run()

    def receives(self, worker: str) -> bool:
        """Whether a worker is not paused."""
        return self.mapped.running.get(worker) != 0

    def is_through(self) -> None:
        """See that no command of the page is left.

        Raises:
            AssertionError: with those that are.
        """
        assert self.left == [], f"{self.page}: not typed: {[each.text for each in self.left]}"
