"""What a new worker is: the files that are written, and the lines that are added to those that are there. It writes nothing."""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from ops.exits import CommandError, Exit
from shared.naming import camel

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

TEMPLATES = Path(__file__).parent
_SPACE = uuid.UUID("5b0c2f6e-0f5e-4f6d-9a55-6d1d2a0c6a11")  # of the made-up message ids
REGISTRY = "functions/registry.py"
UNPLAYED = "tests/unplayed.py"
CONTRACTS = "pyproject.toml"
EVENTS_PAGE = "events/README.md"


@dataclass(frozen=True, slots=True)
class Names:
    """How a worker and its first job are spelled where."""

    worker: str
    job: str

    @property
    def module(self) -> str:
        """Of functions/, of its events and of its tests: `order_lines` of `order-lines`."""
        return self.worker.replace("-", "_")

    @property
    def function(self) -> str:
        """The handler's."""
        return self.job.replace("-", "_")

    @property
    def payload(self) -> str:
        """The class of the job's payload."""
        return camel(self.job)

    @property
    def blanks(self) -> Mapping[str, str]:
        """What the templates name."""
        return {
            "name": self.worker,
            "job": self.job,
            "module": self.module,
            "function": self.function,
            "payload": self.payload,
            "table": self.module.upper(),
        }


def written(names: Names) -> dict[str, str]:
    """The new files by their paths in the tree."""
    subjects: dict[str, tuple[str, int, Mapping[str, object]]] = {
        "new": (f"new/{names.job}", 1, {"subject": "new"}),
        "same-message-three-times": (f"thrice/{names.job}", 3, {"subject": "thrice"}),
        "wrong-payload": (f"wrong/{names.job}", 1, {"subject": 17}),
    }
    return {
        f"functions/{names.module}.py": _filled("worker.py.in", names),
        f"tests/functions/test_{names.module}.py": _filled("test.py.in", names),
        **{
            f"events/{names.module}/{situation}.json": _event(names, key, times, payload)
            for situation, (key, times, payload) in subjects.items()
        },
    }


def changed(names: Names, read: Callable[[str], str]) -> dict[str, str]:
    """The files that are there, with the worker's lines in them.

    Raises:
        CommandError: one of them is not as this command knows it.
    """
    registered = _between(
        REGISTRY,
        read(REGISTRY),
        r"(?<=^from functions import )(?:\([^)]*\)|[^(\n]+)",
        lambda found: _joined(found, names.module),
    )
    registered = _between(
        REGISTRY,
        registered,
        r"(?<=^WORKERS = \(\n)(?:    \S+\n)+",
        lambda found: f"{found}    {names.module}.WORKER,\n",
    )
    row = (
        f"| file of `{names.module}/` | what happens | how it ends |\n|---|---|---|\n"
        "| `new` | a subject is counted | done |\n"
        "| `same-message-three-times` | a producer sends the same message three times | done once, two duplicates |\n"
        "| `wrong-payload` | a subject that is no text | dead letter `invalid-payload`, no attempt |\n\n"
    )
    return {
        REGISTRY: registered,
        CONTRACTS: _between(
            CONTRACTS,
            read(CONTRACTS),
            r'(?<=^type = "independence"\nmodules = \[\n)(?:    "functions\.\w+",\n)+',
            lambda found: "".join(sorted([*found.splitlines(keepends=True), f'    "functions.{names.module}",\n'])),
        ),
        UNPLAYED: _between(
            UNPLAYED, read(UNPLAYED), r"(?<=frozenset\()\s*\([^)]*\)", lambda found: _tuple(found, names.worker)
        ),
        EVENTS_PAGE: _between(
            EVENTS_PAGE, read(EVENTS_PAGE), r"^The files of `front_door/` are events", lambda found: row + found
        ),
    }


def _filled(template: str, names: Names) -> str:
    return Template((TEMPLATES / template).read_text(encoding="utf-8")).substitute(names.blanks)


def _between(file: str, text: str, pattern: str, change: Callable[[str], str]) -> str:
    found = re.findall(pattern, text, re.MULTILINE)
    if len(found) != 1:
        message = (
            f"{file} is not as this command knows it: add the worker by hand, beside the others, or mend the file."
        )
        raise CommandError(message, Exit.REFUSED)
    return re.sub(pattern, lambda place: change(place[0]), text, count=1, flags=re.MULTILINE)


def _joined(modules: str, module: str) -> str:
    known = re.findall(r"[^\s,()]+", modules)
    return f"({', '.join(sorted([*known, module]))})"  # the formatter takes the brackets away where all fits a line


def _tuple(text: str, worker: str) -> str:
    known: Sequence[str] = re.findall(r'"([^"]+)"', text)
    return f"({' '.join(f'{json.dumps(name)},' for name in sorted({*known, worker}))})"


def _event(names: Names, key: str, times: int, payload: Mapping[str, object]) -> str:
    """What Lambda hands to the consumer."""
    body = json.dumps({"job_type": names.job, "version": 1, "idempotency_key": key, "payload": payload})
    records = [
        {
            "messageId": str(message := uuid.uuid5(_SPACE, f"{names.worker} {key} {number}")),
            "receiptHandle": hashlib.sha256(message.bytes).hexdigest(),
            "body": body,
            "attributes": {
                "ApproximateReceiveCount": "1",
                "SentTimestamp": "1767225600000",
                "SenderId": "000000000000",
                "ApproximateFirstReceiveTimestamp": "1767225600050",
            },
            "messageAttributes": {},
            "md5OfBody": hashlib.md5(body.encode(), usedforsecurity=False).hexdigest(),
            "eventSource": "aws:sqs",
            "eventSourceARN": f"arn:aws:sqs:eu-central-1:000000000000:{names.worker}",
            "awsRegion": "eu-central-1",
        }
        for number in range(times)
    ]
    return f"{json.dumps({'Records': records}, indent=2)}\n"
