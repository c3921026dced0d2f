"""What a command works with: where it writes and reads, time, and the ways to a deployed stack. Tests put in their own."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path
    from typing import TextIO

    from rich.console import Console

    from ops.audit import AuditLog
    from ops.jobs.job_records import Jobs
    from ops.stack.deployed import Deployed
    from ops.stack.running import Running
    from ops.stack.together import Mapper
    from shared.backends.mappings import Mapped
    from shared.clock import Clock, Tokens
    from shared.desk.dead_letter_queue import DeadLetterQueue
    from shared.desk.operator_records import OperatorRecords
    from shared.intake.owned_jobs import OwnedJobs
    from shared.producer import Producer
    from shared.rounds.brake import Brakes, Mappings


LINE_END = "\\n"


def plain(text: str) -> Text:
    """A text as it is shown: no markup, and what would steer the terminal, or cannot be written, is escaped. Lines stay lines."""
    return Text("".join(each if each.isprintable() or each == "\n" else _escaped(each) for each in text))


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


@dataclass(frozen=True, slots=True)
class Tools:
    """The tools of one command.

    Attributes:
        out: for what was asked for; programs read it.
        err: for all else.
        stdin: where a payload may come from.
        deployed: finds a stack by its name.
        producer: sends to a queue, by its URL.
        jobs: looks at a table of job records, by its name.
        owned: lists an owner's, by the table's name.
        dead_letters: a worker's dead-letter queue, by the URLs of its queue and of that one.
        operator: what people change about job records, by the table's name.
        audit: where it is told who changed what, by the log group's name.
        caller: who the credentials are of, as AWS names it.
        side_by_side: a block in which calls are made side by side.
        edit: lets people change a text in their editor.
        brakes: which workers are braked, by the table's name.
        mappings: the event source mappings that are named.
        running: looks at what runs in a stack.
        template: the template that a stack was deployed from, by its name.
        assembly: where the cloud assembly of a stage of this code is, which is made if need be.
        http_status: the status that a GET of a URL is answered with, with a token or without.
    """

    out: Console
    err: Console
    stdin: TextIO
    clock: Clock
    tokens: Tokens
    deployed: Callable[[str], Deployed]
    producer: Callable[[str], Producer]
    jobs: Callable[[str], Jobs]
    owned: Callable[[str], OwnedJobs]
    dead_letters: Callable[[str, str], DeadLetterQueue]
    operator: Callable[[str], OperatorRecords]
    audit: Callable[[str], AuditLog]
    caller: Callable[[], str]
    side_by_side: Callable[[], AbstractContextManager[Mapper]]
    edit: Callable[[str], str]
    brakes: Callable[[str], Brakes]
    mappings: Callable[[Mapping[str, Mapped]], Mappings]
    running: Callable[[Deployed], Running]
    template: Callable[[str], Any]
    assembly: Callable[[str], Path]
    http_status: Callable[[str, str | None], int]

    def show(self, fields: Mapping[str, object], *, as_json: bool) -> None:
        """Write fields: a line each, or one JSON object in a line; what is None is left out of the first."""
        if as_json:
            self.write(json.dumps(fields))
            return
        width = max(len(name) for name in fields) + 2
        for name, value in fields.items():
            if value is not None:
                self.write(f"{name.replace('_', ' '):{width}}{str(value).replace(chr(10), LINE_END)}")

    def write(self, line: str) -> None:
        """Write a line of what was asked for."""
        self.out.print(plain(line), soft_wrap=True)

    def busy(self, line: str) -> contextlib.AbstractContextManager[object]:
        """Show people on a terminal that something takes its time; programs hear nothing."""
        return self.err.status(Text(line)) if self.err.is_terminal else contextlib.nullcontext()

    def tell(self, line: str) -> None:
        """Tell people something beside what was asked for."""
        self.err.print(plain(line), soft_wrap=True)
