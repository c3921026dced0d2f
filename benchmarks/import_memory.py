"""What an import needs of memory, by the size of its file: `python -m benchmarks.import_memory`.

Each size is a process of its own, that runs the product's import worker on a file of that many rows. Its stores are in the
same process and forget what is written, so that what is measured is the worker: the peak of its resident memory, and how far
that is above what it had when it was ready.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from benchmarks.machine import commit
from functions import imports
from local.imports.file import ImportFile
from shared.backends.memory.database import MemoryDatabase
from shared.files import File
from tests.functions.imports_case import message
from tests.world import FakeClock, World

if TYPE_CHECKING:
    from collections.abc import Iterable

    from shared.item import Write
    from shared.outbox import Posting

SIZES = (10_000, 100_000, 1_000_000)
RESULTS = Path(__file__).with_suffix(".json")
MOST_ABOVE = 16  # MiB that an import may take, whatever its size: some chunks, a part, and what allocators keep


@dataclass(frozen=True, slots=True)
class Measured:
    """One import: MiB of resident memory when the worker was ready and at its peak, rows, and seconds."""

    rows: int
    written: int
    ready: float
    peak: float
    seconds: float

    @property
    def above(self) -> float:
        """What the import itself took."""
        return self.peak - self.ready


class Forgetful(MemoryDatabase):
    """Job records and the outbox as they are; rows are counted and forgotten, and so is what was sent."""

    written = 0

    def demand(self, write: Write) -> None:
        """Rows are new: each import has its own."""

    def apply(self, write: Write) -> None:
        """Count."""
        del write
        self.written += 1

    def put_posting(self, posting: Posting, now: object) -> None:
        """Hand it to the queue at once."""
        del now
        self.waiting.append(posting.body)

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock)
        self.waiting: list[str] = []


@dataclass
class OnDisk:
    """The file, and a place where reports are written."""

    path: Path

    def look(self, bucket: str, key: str) -> File | None:
        """The file as it is now."""
        del bucket
        place = self._place(key)
        return File(place.stat().st_size, "1") if place.exists() else None

    def read(self, bucket: str, key: str, tag: str, start: int, end: int) -> bytes | None:
        """A range of it."""
        del bucket, tag
        with self._place(key).open("rb") as file:
            file.seek(start)
            return file.read(end - start)

    def write(self, bucket: str, key: str, chunks: Iterable[bytes]) -> None:
        """Write a report."""
        del bucket
        place = self._place(key)
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("wb") as file:
            for chunk in chunks:
                file.write(chunk)

    def _place(self, key: str) -> Path:
        return self.path / key


def measure(rows: int) -> Measured:
    """Import a file of so many rows, in this process."""
    with tempfile.TemporaryDirectory() as folder:
        files = OnDisk(Path(folder))
        files.write("imports", "uploads/products.csv", ImportFile(rows).chunks())
        world = World(imports.WORKER, FakeClock())
        world.database = database = Forgetful(world.clock)
        world.files = files
        database.waiting.append(message("products.csv"))
        counted, ready, begun = 0, peak_now(), time.perf_counter()
        while database.waiting:
            world.run_long(database.waiting.pop(0))
            ends = database.records.ends[counted:]
            counted += len(ends)
            world.runtime.execution.attempts.counting.count(ends)
        return Measured(rows, database.written, ready, peak_now(), time.perf_counter() - begun)


def peak_now() -> float:
    """The peak of this process's resident memory so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> int:
    """Measure all sizes; 0 means that none takes more than is allowed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.import_memory", description=__doc__)
    parser.add_argument("--rows", type=int, nargs="*", default=SIZES, help="sizes, the smallest first")
    parser.add_argument("--one", type=int, help="measure this size in this process, and print it as JSON")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    options = parser.parse_args()
    if options.one is not None:
        print(json.dumps(asdict(measure(options.one))))  # noqa: T201 - the result
        return 0
    found = []
    with Progress(console=Console(stderr=True)) as progress:
        bar = progress.add_task("importing", total=sum(options.rows))
        for rows in options.rows:
            command = [sys.executable, "-m", "benchmarks.import_memory", "--one", str(rows)]
            ran = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - ourselves
            found.append(Measured(**json.loads(ran.stdout.splitlines()[-1])))
            progress.advance(bar, rows)
    results = {
        "machine": platform.machine(),
        "python": platform.python_version(),
        "commit": commit(),
        "most_above_mib": MOST_ABOVE,
        "imports": [{**asdict(each), "above": round(each.above, 1)} for each in found],
    }
    RESULTS.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    _show(found, json.dumps(results) if options.json else None)
    return int(max(each.above for each in found) > MOST_ABOVE)


def _show(found: list[Measured], as_json: str | None) -> None:
    table = Table("rows", "written", "ready (MiB)", "peak (MiB)", "above ready", "rows a second")
    for each in found:
        table.add_row(
            f"{each.rows:,}",
            f"{each.written:,}",
            f"{each.ready:.0f}",
            f"{each.peak:.0f}",
            f"{each.above:.1f}",
            f"{each.rows / each.seconds:,.0f}",
        )
    console = Console(stderr=as_json is not None)
    console.print(table)
    console.print(
        f"{max(each.above for each in found):.1f} MiB above ready at the most; {MOST_ABOVE} are allowed at any size"
    )
    if as_json is not None:
        print(as_json)  # noqa: T201 - the result


if __name__ == "__main__":
    sys.exit(main())
