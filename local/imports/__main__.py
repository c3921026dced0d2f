"""The import demo: `python -m local.imports` imports a large file while workers are killed; exit status 0 means exact counts.

With `--json` the last line of stdout is one JSON object.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from local.imports.file import ImportFile
from local.imports.run import KILLED_AT, ImportRun, Stuck, shares
from local.processes.child import ProcessError
from local.processes.children import Interrupted
from local.stack.running import running_stack

if TYPE_CHECKING:
    from local.imports.run import Books
    from shared.job_record import JobView

ROWS = 200_000
TOLD_EVERY = 10.0  # seconds, where there is no terminal


class Bar:
    """How far the import is: a bar on a terminal, a line now and then elsewhere."""

    def __init__(self, console: Console) -> None:
        self._console = console
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._progress = Progress(*columns, console=console, transient=True)
        self._task = self._progress.add_task("waiting for the worker", total=None)
        self._started = self._told = time.monotonic()

    def __enter__(self) -> Self:
        """Begin to show it."""
        if self._console.is_terminal:
            self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self._progress.stop()

    def show(self, view: JobView | None) -> None:
        """The job as it stands."""
        ended, total = shares(view)
        if total:
            what = "parts imported"
        elif view is not None and view.progress is not None:
            what, ended, total = view.progress.note, view.progress.done, view.progress.total or 0
        else:
            what = "waiting for the worker"
        self._progress.update(self._task, description=what, completed=ended, total=total or None)
        if not self._console.is_terminal and time.monotonic() - self._told > TOLD_EVERY:
            self._told = time.monotonic()
            self.say(f"{what}: {ended:,} of {total:,}" if total else what)

    def say(self, line: str) -> None:
        """A line that stays."""
        self._console.print(f"[dim]{time.monotonic() - self._started:6.1f} s[/dim] {line}", soft_wrap=True)


def run(console: Console, rows: int, kills: int, logs: Path | None = None) -> Books:
    """Start the stack, import, count, and stop everything again.

    Raises:
        ProcessError: a part of the stack does not start or ended early.
        Stuck: the import does not go on.
    """
    bar = Bar(console)
    with running_stack(bar.say, logs) as stack:
        bar.say(f"importing {rows:,} rows")
        with bar:
            books = ImportRun(stack, ImportFile(rows), bar.show, bar.say, kills).run()
    bar.say(
        f"{books.written:,} rows written, {books.refused:,} refused and reported; {books.missing} missing, {books.doubled}"
        f" doubled, {books.wrong_in_report} told wrongly; {books.parts} parts, {books.killed} workers killed,"
        f" {books.seconds:.0f} s."
    )
    return books


def main() -> int:
    """Run the demo; 0 means that every row is where it must be, once."""
    parser = argparse.ArgumentParser(
        prog="python -m local.imports", description="A large file imported locally, while workers are killed."
    )
    parser.add_argument(
        "--rows", type=int, default=ROWS, help=f"of the file, one in a hundred bad; by default {ROWS:,}"
    )
    parser.add_argument("--kills", type=int, default=len(KILLED_AT), choices=range(len(KILLED_AT) + 1))
    parser.add_argument("--json", action="store_true", help="one JSON object as the last line of stdout")
    parser.add_argument("--logs", type=Path, help="folder in which the logs of all parts stay")
    options = parser.parse_args()
    console = Console(stderr=options.json, highlight=False)
    try:
        books = run(console, options.rows, options.kills, options.logs)
    except (ProcessError, Stuck) as error:
        console.print(str(error), markup=False)
        return 1
    except Interrupted as interrupted:
        console.print("interrupted; everything is stopped")
        return interrupted.status
    if options.json:
        sys.stdout.write(f"{books.as_json()}\n")
    return 0 if books.is_ok and books.killed == options.kills else 1


if __name__ == "__main__":
    sys.exit(main())
