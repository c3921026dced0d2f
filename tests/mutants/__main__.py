"""`python -m tests.mutants [WORD]`: make each mutant (whose guard holds the word), run its tests, tell which survive."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from os import cpu_count

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from tests.mutants.run import survives
from tests.mutants.table import MUTANTS


def main(word: str) -> int:
    """Run them; the exit status is the number of survivors, at most 1."""
    chosen = [mutant for mutant in MUTANTS if word in mutant.guard]
    survivors = []
    with Progress(console=Console(stderr=True)) as progress, ThreadPoolExecutor(cpu_count()) as pool:
        bar = progress.add_task("mutants", total=len(chosen))
        futures = {pool.submit(survives, mutant): mutant for mutant in chosen}
        for future in as_completed(futures):
            progress.advance(bar)
            if future.result():
                survivors.append(futures[future])
    table = Table("survivor", "stands in", "tests that should notice")
    for mutant in survivors:
        table.add_row(mutant.guard, mutant.file, mutant.tests)
    if survivors:
        Console().print(table)
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} mutants killed")  # noqa: T201 - the result
    return int(bool(survivors))


if __name__ == "__main__":
    sys.exit(main(" ".join(sys.argv[1:])))
