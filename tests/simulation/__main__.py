"""`python -m tests.simulation --seeds 20000`: many runs; `--seed N --mode M`: one of them again."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from benchmarks.machine import commit
from tests.modes import Mode
from tests.simulation.run import Result, run_seed, run_seeds

RULE_OF_THREE = 3  # with 95 % confidence a violation happens in fewer runs than 3 of those that showed none


def main() -> int:
    """Run; 0 means that no invariant was violated."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument("--seeds", type=int, default=1000, help="how many runs")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, help="this run alone")
    parser.add_argument("--mode", choices=list(Mode), help="by default all, in turn")
    options = parser.parse_args()
    if options.seed is not None:
        return _tell(Console(), run_seed(options.seed, Mode(options.mode or Mode.NORMAL)))
    modes = (Mode(options.mode),) if options.mode else tuple(Mode)
    seeds = range(options.first, options.first + options.seeds)
    checked: Counter[str] = Counter()
    fired: Counter[str] = Counter()
    failures = []
    console = Console(stderr=True)
    begun = time.monotonic()
    columns = (TextColumn("simulating"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task("seeds", total=len(seeds))
        for result in run_seeds(seeds, modes):
            progress.advance(bar)
            checked.update(result.checked)
            fired.update(result.fired)
            if result.found:
                failures.append(result)
                _tell(console, result)
    _summarise(Console(), checked, fired)
    seconds = time.monotonic() - begun
    print(  # noqa: T201 - the result
        f"{len(seeds)} seeds from {options.first} in {', '.join(modes)} at {commit()}:"
        f" {len(failures)} violations, {len(seeds) / seconds:.1f} seeds a second"
    )
    return int(bool(failures))


def _tell(console: Console, result: Result) -> int:
    if result.found:
        console.print(f"seed {result.seed} ({result.mode}): {result.found}", markup=False, soft_wrap=True)
        console.print(f"  again: {result.command}", markup=False)
        return 1
    console.print(f"seed {result.seed} ({result.mode}) holds; faults: {dict(result.fired)}", markup=False)
    return 0


def _summarise(console: Console, checked: Counter[str], fired: Counter[str]) -> None:
    table = Table("invariant", "runs that held", "violated in fewer than")
    for name, runs in sorted(checked.items()):
        table.add_row(name, str(runs), f"1 of {runs // RULE_OF_THREE}")
    console.print(table)
    faults = Table("fault", "fired")
    for name, count in sorted(fired.items()):
        faults.add_row(name, str(count))
    console.print(faults)


if __name__ == "__main__":
    sys.exit(main())
