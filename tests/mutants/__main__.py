"""`python -m tests.mutants [WORD]`: make each mutant (whose guard holds the word), run its tests, tell which test noticed."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from os import cpu_count

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table

from tests.mutants.run import killer
from tests.mutants.table import MUTANTS


def main(word: str) -> int:
    """Run them; the exit status is the number of survivors, at most 1."""
    chosen = [mutant for mutant in MUTANTS if word in mutant.guard]
    killed: dict[str, str | None] = {}
    with Progress(console=Console(stderr=True)) as progress, ThreadPoolExecutor(cpu_count()) as pool:
        bar = progress.add_task("mutants", total=len(chosen))
        futures = {pool.submit(killer, mutant): mutant for mutant in chosen}
        for future in as_completed(futures):
            progress.advance(bar)
            killed[futures[future].guard] = future.result()
    table = Table("guard taken out", "killed by")
    for mutant in chosen:
        by = killed[mutant.guard]
        table.add_row(escape(mutant.guard), f"[red]SURVIVES {escape(mutant.tests)}" if by is None else escape(by))
    Console(width=None if sys.stdout.isatty() else 200).print(table)
    survivors = [guard for guard, by in killed.items() if by is None]
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} mutants killed")  # noqa: T201 - the result
    return int(bool(survivors))


if __name__ == "__main__":
    sys.exit(main(" ".join(sys.argv[1:])))
