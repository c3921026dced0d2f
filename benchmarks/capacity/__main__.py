"""`python -m benchmarks.capacity`: the curves; with `--rate` the plan for one rate; with `--validate` the model beside the local stack.

Exit status 1 means that the model is not within its bounds.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from benchmarks.capacity import curves, page, pictures, validation
from benchmarks.capacity.deployment import Deployment
from benchmarks.capacity.dollars import of_a_million_jobs
from benchmarks.capacity.fluid import drain_seconds, flow
from benchmarks.capacity.invocation import concurrency_for
from benchmarks.capacity.local_run import LoadError
from benchmarks.capacity.plan import HEADROOM, plan, settings_of
from benchmarks.capacity.shape import Origin, shape_of
from benchmarks.capacity.shown import compared_table, curve_table, tell_plan
from infra.stage.settings import load_stage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shared.worker import Worker

STDERR = Console(stderr=True, highlight=False)
STDOUT = Console(highlight=False, soft_wrap=True)
BAR = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run."""
    options = _parser().parse_args(arguments)
    stage = load_stage(options.stage)
    workers = [stage.at(each) for each in curves.all_workers() if not options.worker or each.name in options.worker]
    if options.validate:
        return _validate(as_json=options.json)
    if options.rate is not None:
        return _plan(options, workers)
    return _curves(options, workers)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.capacity", description="How far the deployed stack goes."
    )
    names = [worker.name for worker in curves.all_workers()]
    parser.add_argument("--worker", action="append", choices=names, help="only this one; may be repeated")
    parser.add_argument("--rate", type=float, help="jobs a second: the plan for this rate")
    parser.add_argument("--origin", type=Origin, choices=list(Origin), default=Origin.QUEUE, help="how jobs come")
    parser.add_argument("--seconds", type=float, help="how long a job takes; by default as docs/cost.md assumes")
    parser.add_argument("--headroom", type=float, default=HEADROOM, help="share of the rate that is kept free")
    parser.add_argument("--hottest", type=float, default=0, help="share of the jobs that are about one item")
    parser.add_argument("--outage", type=float, default=1, help="hours of the outage that is drained")
    parser.add_argument("--stage", default="prod", help="of cdk.json: its sizes")
    parser.add_argument("--validate", action="store_true", help="the model beside the local stack")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout, and nothing written")
    return parser


def _curves(options: argparse.Namespace, workers: list[Worker]) -> int:
    """Calculate, and where all workers are asked for, keep, draw and write the page."""
    with Progress(*BAR, console=STDERR, transient=True) as progress:
        bar = progress.add_task("curves", total=len(workers) * len(Origin) * len(curves.RATES))
        found = curves.curves(workers, Origin, lambda: progress.advance(bar))
    if options.json:
        _say_json(curves.rounded([asdict(each) for each in found]))
        return 0
    for each in found:
        STDOUT.print(curve_table(each))
    if len(workers) == len(curves.all_workers()):
        curves.keep(found)
        _write()
    return 0


def _write() -> None:
    for file in pictures.draw_all(curves.kept(), validation.kept()):
        STDERR.print(f"docs/pictures/{file.name}")
    page.main()
    STDERR.print("docs/capacity.md")


def _plan(options: argparse.Namespace, workers: list[Worker]) -> int:
    """The plan of each worker that was asked for."""
    told = []
    for worker in workers:
        shape = shape_of(worker, options.origin, seconds=options.seconds, factors=validation.measured_factors())
        declared = replace(Deployment.of(worker), hottest=options.hottest)
        made = plan(shape, declared, options.rate, options.headroom)
        batch = curves.steady_batch(shape, made.deployment, options.rate)
        drained = drain_seconds(shape, made.deployment, options.rate, options.outage * 3600)
        told.append(
            {
                "worker": worker.name,
                "rate": options.rate,
                "concurrency": [
                    concurrency_for(options.rate, shape.time, declared, each) for each in (declared.batch_size, 1)
                ],
                "changes": [asdict(change) for change in made.changes],
                "cdk.json": settings_of(made, shape, declared),
                "in the way": [asdict(limit) for limit in made.in_the_way],
                "oldest while it grows": flow(shape, made.deployment, options.rate).oldest_ever,
                "dollars a million": of_a_million_jobs(shape, batch, lasts=options.seconds),
                "outage drained in": drained,
            }
        )
    if options.json:
        _say_json(curves.rounded(told))
    else:
        for each in told:
            tell_plan(STDOUT, each, options.headroom, options.outage)
    return 0


def _validate(*, as_json: bool) -> int:
    """Run the loads, keep and draw them."""
    with Progress(*BAR, console=STDERR, transient=True) as progress:
        bar = progress.add_task("validation", total=1.0)
        try:
            calibrated, compared = validation.validate(
                lambda name, part: progress.update(bar, description=name, completed=part)
            )
        except LoadError as error:
            STDERR.print(f"[red]{error}[/red] This run says nothing of the model: repeat it.")
            return 1
    holds = all(each.holds for each in compared)
    if as_json:
        _say_json([{**asdict(each), "holds": each.holds} for each in compared])
        return int(not holds)
    STDOUT.print(compared_table(compared))
    validation.keep(calibrated, compared)
    if curves.KEPT.exists():
        _write()
    return int(not holds)


def _say_json(told: object) -> None:
    sys.stdout.write(f"{json.dumps(told, indent=1, default=str)}\n")


if __name__ == "__main__":
    sys.exit(main())
