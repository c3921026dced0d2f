"""What people see on a terminal: tables of curves and of the validation, and a plan in words."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rich.table import Table

from benchmarks.capacity.told import duration, number
from benchmarks.capacity.validation import LABEL

if TYPE_CHECKING:
    from rich.console import Console

    from benchmarks.capacity.curves import Curve
    from benchmarks.capacity.validation import Compared

HOURS = 730  # of a month


def curve_table(curve: Curve) -> Table:
    """The points of a curve."""
    table = Table(title=f"{curve.worker}, jobs come by the {curve.origin} (model)", title_justify="left")
    for name in ("jobs a second", "concurrency", "oldest, planned", "dollars", "drain"):
        table.add_column(name, justify="right")
    table.add_column("first bound, as declared")
    table.add_column("not to be moved")
    for point in curve.points:
        table.add_row(
            number(point.rate),
            f"{number(point.least)} to {number(point.most)}",
            duration(point.planned_oldest),
            f"{point.dollars:.2f}",
            "never" if point.drain is None else duration(point.drain),
            point.bottleneck or "none",
            point.in_the_way or "-",
        )
    return table


def tell_plan(console: Console, told: dict[str, Any], headroom: float, outage: float) -> None:
    """A plan, in words; the outage in hours."""
    least, most = told["concurrency"]
    cost = told["dollars a million"]
    console.print(
        f"\n[bold]{told['worker']} at {number(told['rate'])} jobs a second[/bold], {headroom:.0%} headroom (model)"
    )
    console.print(f"concurrent invocations: {number(least)} in full batches, up to {number(most)} of one job each")
    if told["changes"]:
        table = Table()
        for name in ("setting", "now", "then", "where"):
            table.add_column(name, overflow="fold")
        for change in told["changes"]:
            table.add_row(*(str(change[name]) for name in ("setting", "now", "then", "where")))
        console.print(table)
    else:
        console.print("what is declared carries it")
    if told["cdk.json"]:
        console.print(f"into the stage in cdk.json: {json.dumps(told['cdk.json'])}", markup=False)
    for limit in told["in the way"]:
        console.print(
            f"in the way: {limit['name']} at {number(limit['jobs'])} jobs a second; {limit['setting']}", markup=False
        )
    drained = told["outage drained in"]
    console.print(f"oldest message while it grows: {duration(told['oldest while it grows'])}")
    console.print(
        f"an outage of {outage:g} h is drained in {'no time that ends' if drained is None else duration(drained)}"
    )
    month = sum(cost.values()) * told["rate"] * HOURS * 3600 / 1e6
    parts = ", ".join(f"{name} {value:.2f}" for name, value in cost.items())
    console.print(
        f"a million jobs: {sum(cost.values()):.2f} dollars ({parts}); a month at this rate: {month:,.0f}", markup=False
    )


def compared_table(compared: list[Compared]) -> Table:
    """What was measured beside what was predicted."""
    table = Table(title=LABEL, title_justify="left")
    for name in ("load", "jobs a second", "model", "off by", "p95, seconds", "model", "off by", ""):
        table.add_column(name, justify="right")
    for each in compared:
        table.add_row(
            each.load,
            f"{each.throughput:.2f}",
            f"{each.predicted_throughput:.2f}",
            f"{each.throughput_error:.0%}",
            f"{each.p95:.2f}",
            f"{each.predicted_p95:.2f}",
            f"{each.p95_error:.0%}",
            "[green]ok[/green]" if each.holds else "[red]NOT within its bounds[/red]",
        )
    return table
