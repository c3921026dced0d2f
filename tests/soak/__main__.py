"""`python -m tests.soak --minutes 30`: rounds of load under chaos; status 0 means that every round's books are right."""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import sys
import tempfile
import time
from collections import Counter
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from local.outside.payment_provider import Provider
from local.processes.child import Program
from local.processes.children import Children
from local.processes.ports import free_port, listens
from local.stack.valkey import Valkey
from tests.aws import CREDENTIALS
from tests.faults import burst
from tests.serving import serving
from tests.soak.round import Round

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.progress import TaskID

    from tests.soak.round import Books


@contextlib.contextmanager
def stage(folder: Path) -> Iterator[tuple[Valkey, Provider, burst.Burst]]:
    """moto, Valkey, microburst in processes of their own, and the provider in this one."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    os.environ.update(CREDENTIALS)
    port = free_port()
    with Children() as children, serving(Provider(0, quiet=True)) as provider:
        command = (sys.executable, "-m", "tests.moto_server", str(port))
        moto = children.start(Program("moto", command, dict(os.environ), folder / "moto.log"))
        moto.wait_until(lambda: listens(port), timedelta(seconds=60))
        os.environ["AWS_ENDPOINT_URL"] = f"http://127.0.0.1:{port}"
        valkey = Valkey(children, folder / "valkey")
        valkey.start()
        yield valkey, provider, burst.start(children, os.environ["AWS_ENDPOINT_URL"], folder)


def main() -> int:
    """Run."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seconds", type=float, default=40.0, help="of load in a round")
    parser.add_argument("--first", type=int, default=1, help="the first round's number, which is its seed")
    options = parser.parse_args()
    logging.disable()
    console = Console(stderr=True)
    ends = time.monotonic() + options.minutes * 60
    books: list[Books] = []
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with (
        tempfile.TemporaryDirectory() as folder,
        stage(Path(folder)) as parts,
        Progress(*columns, console=console) as bar,
    ):
        shown = bar.add_task("soaking", total=options.minutes * 60)
        number = options.first
        while time.monotonic() < ends:
            tell_progress = partial(_tell_progress, bar, shown, number)
            tell_progress("load")
            played = Round(number, *parts, options.seconds, tell=tell_progress)
            books.append(played.run())
            bar.update(shown, completed=options.minutes * 60 - max(0.0, ends - time.monotonic()))
            for wrong in books[-1].wrong:
                console.print(f"round {number}: {wrong}", markup=False, soft_wrap=True)
            number += 1
    return tell(books)


def _tell_progress(bar: Progress, shown: TaskID, number: int, what: str) -> None:
    bar.update(shown, description=f"round {number}: {what}")


def tell(books: list[Books]) -> int:
    """The sum of all books."""
    fired: Counter[str] = sum((each.fired for each in books), Counter())
    table = Table("what happened", "times")
    for name, times in sorted(fired.items()):
        table.add_row(name, str(times))
    Console().print(table)
    sent, completed, duplicates, dead, replayed = (
        sum(getattr(each, name) for each in books)
        for name in ("sent", "completed", "duplicates", "dead_lettered", "replayed")
    )
    wrong = sum(len(each.wrong) for each in books)
    print(  # noqa: T201 - the result
        f"{len(books)} rounds: {sent} sent = {completed} completed + {duplicates} duplicates + {dead} dead-lettered"
        f" ({sent - completed - duplicates - dead} lost), {replayed} replayed, {wrong} violations"
    )
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
