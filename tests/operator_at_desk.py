"""An operator with a page of `docs/runbooks` before them: types its commands, as they stand there, on a stack of the tests."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, Any

from rich.console import Console

from functions.lookout import Lookout
from ops.cli import connected, main
from ops.exits import Exit
from ops.stack.aws_running import AwsRunning
from ops.stack.deployed import Deployed
from ops.stack.running import Receiving
from shared.backends.aws import client
from shared.backends.dynamodb.brakes import DynamoDBBrakes
from shared.backends.memory.brakes import MemoryMappings
from shared.backends.redis.connection import Connection
from shared.backends.redis.gates import RedisGates
from shared.backends.redis.held_leases import RedisLeases
from shared.backends.sqs.dead_letters import SqsDeadLetters
from shared.clock import SystemClock
from shared.naming import camel
from shared.rounds.brake_rounds import Controller
from shared.telemetry import Silent
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Looking(AwsRunning):
    """Queues are real; the mapping is the tests' own; the lookout is asked without Lambda; CloudWatch has nothing."""

    mapped: MemoryMappings
    lookout_of_stack: Lookout

    def receiving(self, worker: str) -> Receiving:
        return Receiving("Disabled" if self.mapped.running.get(worker) == 0 else "Enabled", None)

    def measured(self, workers: Sequence[Worker], now: Any) -> Mapping[str, Mapping[str, float]]:
        return {}

    def ask_lookout(self, question: Mapping[str, object]) -> dict[str, Any]:
        return self.lookout_of_stack.answer(dict(question))


class Letters(SqsDeadLetters):
    """A dead-letter queue at an endpoint that knows no move tasks, and is not asked for any."""

    def redrive(self) -> None:
        """None runs."""


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
        settings, name = stack.settings, camel(stack.worker.name)
        redis = Connection(settings.cache_host, int(settings.cache_port), tls=False, cluster=False)
        brakes = DynamoDBBrakes(client("dynamodb"), settings.jobs_table)
        clock, gates = SystemClock(), RedisGates(redis)
        controller = Controller({}, gates, brakes, self.mapped, clock, Silent())
        self.lookout = Lookout(controller, gates, (), RedisLeases(redis))
        outputs = {
            "JobsTable": settings.jobs_table,
            "AuditLog": AUDIT,
            "LookoutFunction": "lookout",
            f"Queue{name}": settings.queues[stack.worker.name],
            f"DeadLetterQueue{name}": settings.dead_letter_queues[stack.worker.name],
            f"Mapping{name}": "uuid 20",
        }
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
            running=lambda deployed: Looking(deployed, mapped=self.mapped, lookout_of_stack=self.lookout),
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
        if self.mapped.running.get(self.stack.worker.name) != 0:
            self.stack.run()

    def is_through(self) -> None:
        """See that no command of the page is left.

        Raises:
            AssertionError: with those that are.
        """
        assert self.left == [], f"{self.page}: not typed: {[each.text for each in self.left]}"
