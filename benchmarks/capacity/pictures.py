"""Draws what was kept: docs/pictures/capacity-*.png, each labelled as what it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from benchmarks.capacity.quotas import ACCOUNT_CONCURRENCY, MOST_POLLERS, POLLER_INVOCATIONS
from infra.stage.settings import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

FOLDER = ROOT / "docs" / "pictures"
MODEL = "model"
CHECK = "model beside the local stand-in: a check of arithmetic, not of AWS"
COLORS = ("#1971c2", "#e8590c", "#2f9e44", "#9c36b5", "#e03131", "#0c8599")
STYLE: Any = {"font.size": 9, "axes.titlesize": 10, "axes.titleweight": "bold", "axes.titlelocation": "left"}
GRID = "#dee2e6"
LEAST_AGE = 0.1  # seconds, at the bottom of a logarithmic axis
A_DAY = 86_400.0


def draw_all(curves: dict[str, Any], validation: dict[str, Any]) -> list[Path]:
    """All pictures; gives their files."""
    sent = [curve for curve in curves["curves"] if curve["origin"] == "queue"]
    accepted = [curve for curve in curves["curves"] if curve["origin"] == "front-door"]
    drawn: dict[str, Callable[[Figure], None]] = {
        "capacity-concurrency": lambda figure: _concurrency(figure, sent),
        "capacity-age": lambda figure: _age(figure, sent),
        "capacity-bounds": lambda figure: _bounds(figure, sent, accepted),
        "capacity-cost": lambda figure: _cost(figure, sent, accepted),
        "capacity-validation": lambda figure: _validation(figure, validation),
    }
    files = []
    for name, draw in drawn.items():
        files.append(FOLDER / f"{name}.png")
        with mpl.rc_context(STYLE):
            figure = Figure(figsize=(10, 5.4), facecolor="white", layout="constrained")
            draw(figure)
            label = CHECK if name == "capacity-validation" else MODEL
            figure.supxlabel(label, x=0.995, ha="right", fontsize=9, color="#e03131", fontweight="bold")
            figure.savefig(files[-1], dpi=100, metadata={"Software": None})
    return files


def _coloured(curves: list[dict[str, Any]], *names: str) -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
    """A colour, a label and the points of each line; workers whose values are the same are one line."""
    lines: dict[str, list[dict[str, Any]]] = {}
    for curve in curves:
        values = [[point[name] for name in names] for point in curve["points"]]
        lines.setdefault(str(values), []).append(curve)
    for color, same in zip(COLORS, lines.values(), strict=False):
        yield color, ", ".join(curve["worker"] for curve in same), same[0]["points"]


def _axes(axes: Axes, title: str, unit: str) -> None:
    axes.set_title(title)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("jobs a second")
    axes.set_ylabel(unit)
    axes.grid(visible=True, color=GRID, linewidth=0.6)
    _plain(axes.xaxis, axes.yaxis)


def _plain(*lines: Axis) -> None:
    """Numbers as people write them: powers of ten would need fonts of mathematics."""
    for line in lines:
        line.set_major_formatter(lambda value, _: f"{value:,.10g}")
        line.set_minor_formatter(NullFormatter())


def _rates(points: list[dict[str, Any]]) -> list[float]:
    return [point["rate"] for point in points]


def _concurrency(figure: Figure, curves: list[dict[str, Any]]) -> None:
    axes = figure.add_subplot()
    _axes(
        axes,
        "Concurrent invocations that a rate needs: in full batches (line), up to one job each (shaded)",
        "invocations",
    )
    for color, worker, points in _coloured(curves, "least", "most"):
        least, most = ([max(point[name], 1) for point in points] for name in ("least", "most"))
        axes.plot(_rates(points), least, color=color, label=worker)
        axes.fill_between(_rates(points), least, most, color=color, alpha=0.12, linewidth=0)
    bounds = {
        "quota of an account, and the highest maximum concurrency": ACCOUNT_CONCURRENCY.value,
        "provisioned mode at its most": MOST_POLLERS.value * POLLER_INVOCATIONS.value,
    }
    for name, bound in bounds.items():
        axes.axhline(bound, color="#495057", linestyle="--", linewidth=1)
        axes.text(11, bound * 1.08, name, fontsize=8, color="#495057")
    axes.legend(frameon=False, loc="lower right")


def _age(figure: Figure, curves: list[dict[str, Any]]) -> None:
    left, right = figure.subplots(1, 2, sharey=True)
    _axes(left, "Oldest message after an hour, as declared", "seconds")
    _axes(right, "Oldest message under the plan, while it grows", "")
    for axes, name, place in ((left, "oldest", "lower right"), (right, "planned_oldest", "upper left")):
        for color, worker, points in _coloured(curves, name):
            ages = [max(point[name], LEAST_AGE) for point in points]
            axes.plot(_rates(points), ages, color=color, marker=".", label=worker)
        axes.legend(frameon=False, loc=place)


def _bounds(figure: Figure, sent: list[dict[str, Any]], accepted: list[dict[str, Any]]) -> None:
    """A row for each bound, a mark for each worker."""
    ladders = {curve["worker"]: curve["ladder"] for curve in accepted or sent}
    names: dict[str, float] = {}
    for ladder in ladders.values():
        for limit in ladder:
            name = limit["name"].partition(" (")[0]
            names[name] = min(names.get(name, limit["jobs"]), limit["jobs"])
    rows = {name: place for place, name in enumerate(sorted(names, key=lambda each: -names[each]))}
    axes = figure.add_subplot()
    axes.set_title("What bounds a worker as it is declared, jobs that come through the front door")
    axes.set_xscale("log")
    axes.set_xlim(8, 1e7)
    axes.set_xlabel("jobs a second")
    axes.grid(visible=True, color=GRID, linewidth=0.6)
    _plain(axes.xaxis)
    axes.axvspan(10, 100_000, color="#f1f3f5", zorder=0)
    for place, (color, (worker, ladder)) in enumerate(zip(COLORS, ladders.items(), strict=False)):
        for number, limit in enumerate(ladder):
            row = rows[limit["name"].partition(" (")[0]] + (place - len(ladders) / 2) * 0.12
            label = worker if number == 0 else None
            axes.scatter(limit["jobs"], row, color=color, s=60 if number == 0 else 18, label=label, zorder=3)
    axes.set_yticks(list(rows.values()), list(rows))
    axes.legend(frameon=False, loc="lower left", title="large: the first")


def _cost(figure: Figure, sent: list[dict[str, Any]], accepted: list[dict[str, Any]]) -> None:
    left, right = figure.subplots(1, 2)
    _axes(left, "A million jobs (dashed: over HTTP)", "dollars")
    left.set_yscale("linear")
    _axes(right, "Drain of an hour's outage (dashed: as declared)", "hours")
    for color, worker, points in _coloured(sent, "dollars"):
        left.plot(_rates(points), [point["dollars"] for point in points], color=color, marker=".", label=worker)
    for color, _, points in _coloured(accepted, "dollars"):
        left.plot(_rates(points), [point["dollars"] for point in points], color=color, linestyle="--", linewidth=1)
    for color, worker, points in _coloured(sent, "drain", "declared_drain"):
        for name, style in (("declared_drain", "--"), ("drain", "-")):
            hours = [float("nan") if point[name] is None else max(point[name], 1) / 3600 for point in points]
            label = worker if name == "drain" else None
            right.plot(_rates(points), hours, color=color, linestyle=style, marker=".", label=label)
    left.set_ylim(bottom=0)
    right.set_ylim(top=A_DAY / 3600)
    left.legend(frameon=False, loc="center right")
    right.legend(frameon=False, loc="lower right")


def _validation(figure: Figure, validation: dict[str, Any]) -> None:
    shown = (
        ("throughput", "predicted_throughput", "jobs a second", 0.15),
        ("p95", "predicted_p95", "95th percentile of the latency, seconds", 0.30),
    )
    loads = validation["loads"]
    for axes, (measured, predicted, unit, within) in zip(figure.subplots(1, 2), shown, strict=True):
        axes.set_title(unit)
        places = range(len(loads))
        values = [load[measured] for load in loads]
        axes.bar([place - 0.2 for place in places], values, 0.38, color="#adb5bd", label="measured")
        axes.bar(
            [place + 0.2 for place in places], [load[predicted] for load in loads], 0.38, color="#1971c2", label="model"
        )
        bounds = [within * value for value in values]
        axes.errorbar(
            [place + 0.2 for place in places],
            values,
            bounds,
            fmt="none",
            ecolor="#e03131",
            capsize=6,
            label="may differ so far",
        )
        axes.set_xticks(list(places), [f"{load['load']}\n{load['rate']:g} a second" for load in loads])
        axes.grid(visible=True, axis="y", color=GRID, linewidth=0.6)
    figure.axes[0].legend(frameon=False, loc="upper left")
    figure.axes[1].set_yscale("log")
    _plain(figure.axes[1].yaxis)
