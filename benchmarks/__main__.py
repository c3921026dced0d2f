"""`make bench`: every measure beside its peers, in one run: a table, a plot, JSON, and a status that tells of falls.

It fails when a figure misses its target, or its ratio has fallen behind the kept one by more than its tolerance.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.judged import complaints
from benchmarks.measures import MEASURES
from benchmarks.running import ROOT, Runner
from benchmarks.shown import as_json, plot, read_results, table, written
from local.processes.child import ProcessError
from local.processes.children import Children, Interrupted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.declared import Measure
    from benchmarks.judged import Found

KEPT = Path(__file__).with_name("kept.json")
BUILD = ROOT / "build" / "bench"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; 0 means that every target is met and nothing has fallen."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.keep and (options.quick or options.only):
        parser.error("a part, or few rounds, are a look and no statement: keep a whole run")
    chosen = [measure for measure in MEASURES if not options.only or measure.name in options.only]
    console = Console(stderr=options.json)
    if options.list:
        for measure in chosen:
            console.print(f"[bold]{measure.name}[/]  {measure.title}")
        return 0
    try:
        results, failed = _run_all(chosen, quick=options.quick, seed=options.seed)
    except Interrupted as interrupted:
        return interrupted.status
    kept = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    told = as_json(results, quick=options.quick, seed=options.seed)
    console.print(table(chosen, results))
    BUILD.mkdir(parents=True, exist_ok=True)
    (BUILD / "bench.json").write_text(written(told), encoding="utf-8")
    plot(chosen, results, BUILD / "bench.png")
    console.print(f"JSON and plot are in {BUILD}.")
    if options.json:
        print(json.dumps(told))  # noqa: T201 - the result
    said = failed + complaints(chosen, results, read_results(kept))
    if options.keep and not failed:
        KEPT.write_text(written(told), encoding="utf-8")
    for sentence in said:
        console.print(sentence, style="red", markup=False)
    return int(bool(said))


def _run_all(chosen: Sequence[Measure], *, quick: bool, seed: int) -> tuple[dict[str, dict[str, Found]], list[str]]:
    """The results by measure, and a sentence for each measure that could not be run."""
    results: dict[str, dict[str, Found]] = {}
    failed = []
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as folder,
        Children() as children,
        Progress(*columns, console=Console(stderr=True)) as progress,
    ):
        runner = Runner(children, Path(folder), quick, seed)
        bar = progress.add_task("", total=len(chosen))
        for place, measure in enumerate(chosen):
            progress.update(bar, description=f"{measure.name:16}")
            try:
                results[measure.name] = runner.run(
                    measure,
                    lambda share, place=place: progress.update(bar, completed=place + share),  # type: ignore[misc]
                )
            except ProcessError as error:
                failed.append(f"{measure.name} could not be measured: {error}")
            progress.update(bar, completed=place + 1)
    return results, failed


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=[measure.name for measure in MEASURES])
    parser.add_argument("--quick", action="store_true", help="few rounds: a look, no statement")
    parser.add_argument("--seed", type=int, default=1, help="of the order in which sides take their turns")
    parser.add_argument("--json", action="store_true", help="print the results as JSON; all else goes to stderr")
    parser.add_argument("--list", action="store_true", help="name the measures")
    parser.add_argument("--keep", action="store_true", help="keep these results as those to fall behind")
    return parser


if __name__ == "__main__":
    sys.exit(main())
