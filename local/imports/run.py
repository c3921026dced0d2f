"""One import on the running stack: the file goes up, its message is sent, workers are killed on the way, and all is counted."""

from __future__ import annotations

import contextlib
import json
import signal
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import psutil

from local.imports.file import line_of, sku_of
from shared.backends.dynamodb.job_record_item import read_view
from shared.backends.s3 import S3Files
from shared.job_record import SYSTEM, Status, record_id
from shared.settings import PREFIX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from local.imports.file import ImportFile
    from local.stack.running import Stack
    from shared.job_record import JobView

KEY = "demo-import"
SOURCE = "products.csv"
LOOK_EVERY = 0.5  # seconds
STANDSTILL = 300.0  # seconds without a change: something hangs
KILLED_AT = (0.2, 0.6)  # shares of the parts


class Stuck(Exception):  # noqa: N818 - what the import is
    """Nothing has changed for long, or the job ended badly."""


@dataclass(frozen=True, slots=True)
class Books:
    """What was counted after the import."""

    rows: int
    written: int
    refused: int
    missing: int
    doubled: int
    wrong_in_report: int
    killed: int
    parts: int
    attempts: int
    seconds: float

    @property
    def is_ok(self) -> bool:
        """Whether nothing is lost, doubled or told wrongly."""
        return not (self.missing or self.doubled or self.wrong_in_report) and self.written + self.refused == self.rows

    def as_json(self) -> str:
        """For programs."""
        return json.dumps({**asdict(self), "ok": self.is_ok})


@dataclass
class ImportRun:
    """Imports a file into a stack."""

    stack: Stack
    file: ImportFile
    tell: Callable[[JobView | None], None]
    say: Callable[[str], None]
    kills: int = len(KILLED_AT)

    def run(self) -> Books:
        """Import, and count.

        Raises:
            Stuck: it does not go on.
        """
        started = time.monotonic()
        s3, bucket = self.stack.clients.s3, self.stack.outputs["BucketImports"]
        S3Files(s3, {"imports": bucket}).write("imports", f"uploads/{SOURCE}", self.file.chunks())
        body = json.dumps({"job_type": "import-data", "idempotency_key": KEY, "payload": {"source": SOURCE}})
        self.stack.clients.sqs.send_message(QueueUrl=self.stack.outputs["QueueImports"], MessageBody=body)
        killed: list[int] = []
        view = self._until_over(killed)
        took = time.monotonic() - started
        self.say(f"the job is {view.status} after {took:.0f} s; counting")
        return self._count(view, len(killed), took)

    def _until_over(self, killed: list[int]) -> JobView:
        """Look until the job has ended; kill workers when so many parts have."""
        changed, last = time.monotonic(), None
        while True:
            self.stack.check()
            view = self._look()
            self.tell(view)
            if view is not None and view.ended:
                return view
            if view is not None and view.status is Status.DEAD_LETTERED:
                message = f"the job is a dead letter: {view.last_failure}"
                raise Stuck(message)
            ended, total = shares(view)
            due = len(killed) < self.kills and total and ended >= KILLED_AT[len(killed)] * total
            if due and (pid := self._kill()) is not None:
                killed.append(pid)
                self.say(f"killed worker process {pid} with SIGKILL, {ended} of {total} parts have ended")
            seen = (view and view.status, view and view.checkpoints, ended)
            if seen != last:
                changed, last = time.monotonic(), seen
            if time.monotonic() - changed > STANDSTILL:
                message = f"nothing has changed for {STANDSTILL:.0f} s: {view}"
                raise Stuck(message)
            time.sleep(LOOK_EVERY)

    def _look(self) -> JobView | None:
        record = record_id(SYSTEM, "import-data", KEY)
        answer = self.stack.clients.dynamodb.get_item(
            TableName=self.stack.outputs["JobsTable"], Key={"id": {"S": record}}, ConsistentRead=True
        )
        return read_view(record, dict(answer["Item"])) if "Item" in answer else None

    def _kill(self) -> int | None:
        """Kill a process of the import worker that works; None if there is none at the moment."""
        for process in psutil.Process(self.stack.standin.child.process.pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if f"{PREFIX}BUCKET_IMPORTS" in process.environ() and process.cpu_percent(0.2) > 1:
                    process.send_signal(signal.SIGKILL)
                    return process.pid
        return None

    def _count(self, view: JobView, killed: int, took: float) -> Books:
        lines: set[int] = set()
        doubled = wrong = 0
        for item in self._items():
            line = int(item["line"]["S"])
            doubled += line in lines or item["version"]["N"] != "1"
            wrong += item["sku"]["S"] != sku_of(line - 2)
            lines.add(line)
        missing = sum(line_of(number) not in lines for number in range(self.file.rows) if not self.file.is_bad(number))
        result: dict[str, Any] = json.loads(view.result or "{}")
        told = list(self._report(result.get("report")))
        expected = list(self.file.report())
        wrong_in_report = sum(mine != theirs for mine, theirs in zip(told, expected, strict=False))
        parts = 0 if view.split is None else view.split.parts
        return Books(
            rows=self.file.rows,
            written=len(lines),
            refused=len(told),
            missing=missing,
            doubled=doubled + wrong,
            wrong_in_report=wrong_in_report + abs(len(told) - len(expected)),
            killed=killed,
            parts=parts,
            attempts=view.attempts,
            seconds=round(took, 1),
        )

    def _items(self) -> Iterator[dict[str, Any]]:
        pages = self.stack.clients.dynamodb.get_paginator("scan")
        for page in pages.paginate(TableName=self.stack.outputs["TableImportRows"], ConsistentRead=True):
            yield from page["Items"]

    def _report(self, key: str | None) -> Iterator[tuple[int, str]]:
        if key is None:
            return
        answer = self.stack.clients.s3.get_object(Bucket=self.stack.outputs["BucketImports"], Key=key)
        for line in answer["Body"].iter_lines():
            told = json.loads(line)
            yield told["line"], told["reason"]


def shares(view: JobView | None) -> tuple[int, int]:
    """How many parts have ended, of how many; none before the job is split."""
    if view is None or view.split is None or view.status is Status.RUNNING:
        return 0, 0
    return (0 if view.tally is None else view.tally.ended), view.split.parts
