"""Results as people see them: a table on the terminal, a plot as PNG, and the JSON that is kept."""

from __future__ import annotations

import json
import platform
import tomllib
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import FuncFormatter, NullFormatter
from rich.table import Table

from benchmarks.declared import Of
from benchmarks.judged import Found, is_met
from benchmarks.machine import commit, machine
from benchmarks.running import PEERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from benchmarks.declared import Figure, Measure

    Results = Mapping[str, Mapping[str, Found]]

GOOD, BAD, PLAIN = "#2a7f62", "#b5413c", "#6b7785"
LIBRARIES = ("aws-lambda-powertools", "boto3", "pydantic", "redis")
WIDE, LINE_HEIGHT = 10, 0.28  # inches


def number(value: float | None) -> str:
    """Three digits, as far as they say something."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"  # noqa: PLR2004 - three digits


def ratio(found: Found) -> str:
    """The ratio with its interval."""
    if found.ratio is None:
        return "-"
    spread = "" if found.rounds == 1 else f" ({number(found.low)} - {number(found.high)})"
    return number(found.ratio) + spread


def verdict(figure: Figure, found: Found) -> str:
    """One word."""
    met = is_met(figure, found)
    return "" if met is None else "met" if met else "MISSED"


def table(measures: Iterable[Measure], results: Results) -> Table:
    """All figures that were measured."""
    shown = Table("figure", "ours", "peer", "unit", "ours / peer (95 %)", "target", "", "beside")
    for measure in measures:
        if measure.name not in results:
            continue
        for figure in measure.figures:
            found = results[measure.name].get(figure.name)
            if found is None:
                continue
            said = verdict(figure, found)
            colour = {"met": "green", "MISSED": "red"}.get(said, "default")
            shown.add_row(
                f"{measure.name}/{figure.name}",
                number(found.ours),
                number(found.peer),
                figure.unit,
                ratio(found),
                "" if figure.target is None else figure.target.text,
                f"[{colour}]{said}[/]",
                figure.peer,
            )
        shown.add_section()
    return shown


def as_json(results: Results, *, quick: bool, seed: int) -> dict[str, Any]:
    """What is kept: where and on what it was measured, and the results."""
    return {
        "machine": machine(),
        "python": platform.python_version(),
        "versions": {**{name: version(name) for name in LIBRARIES}, **_peers()},
        "commit": commit(),
        "date": datetime.now(UTC).date().isoformat(),
        "quick": quick,
        "seed": seed,
        "results": {
            measure: {name: _fields(found) for name, found in figures.items()} for measure, figures in results.items()
        },
    }


def read_results(kept: Mapping[str, Any]) -> dict[str, dict[str, Found]]:
    """The results out of that JSON."""
    return {
        measure: {name: Found.read(fields) for name, fields in figures.items()}
        for measure, figures in kept.get("results", {}).items()
    }


def plot(measures: Sequence[Measure], results: Results, path: Path) -> None:
    """What we need for each of the peer's, on a logarithmic axis so that half and double look alike."""
    rows = [
        (f"{measure.name}: {figure.what}, {figure.unit}\nbeside {figure.peer}", figure, found)
        for measure in measures
        for figure in measure.figures
        if figure.drawn and (found := results.get(measure.name, {}).get(figure.name)) is not None and found.ratio
    ][::-1]
    with mpl.rc_context({"font.size": 8}):
        canvas = Canvas(figsize=(WIDE, 1 + LINE_HEIGHT * len(rows)), layout="constrained")
        axes = canvas.add_subplot()
        for place, (_, figure, found) in enumerate(rows):
            met = is_met(figure, found)
            colour = PLAIN if met is None else GOOD if met else BAD
            axes.plot(
                [_drawn(figure, found.low), _drawn(figure, found.high)], [place, place], color=colour, linewidth=2
            )
            axes.plot([_drawn(figure, found.ratio)], [place], "o", color=colour, markersize=4)
            target = figure.target
            if target is not None and target.of is Of.RATIO:
                axes.plot([_drawn(figure, target.bound)], [place], "|", color="black", markersize=11)
        axes.axvline(1, color="black", linewidth=0.6)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_yticks(range(len(rows)), [name for name, *_ in rows], fontsize=6)
        axes.set_ylim(-0.7, len(rows) - 0.3)
        axes.set_title("left of 1 we are better; | is the target, green meets it, red misses it", fontsize=8)
        axes.set_xlabel("ours / peer, or peer / ours where more is better: median and 95 % interval")
        canvas.savefig(path, dpi=130, metadata={"Software": None})


def _drawn(figure: Figure, ratio: float | None) -> float:
    """A ratio so that less is better."""
    value = ratio or 1.0
    return 1 / value if figure.more_is_better else value


def _fields(found: Found) -> dict[str, Any]:
    known = {name: getattr(found, name) for name in ("ours", "peer", "ratio", "low", "high")}
    rounded = {name: None if value is None else float(f"{value:.4g}") for name, value in known.items()}
    return {**rounded, "rounds": found.rounds, "more": {name: float(f"{v:.4g}") for name, v in found.more.items()}}


def _peers() -> dict[str, str]:
    """The versions of those that are in the peers' environment alone."""
    wanted = {"cashews", "celery", "dogpile-cache", "dramatiq", "kombu"}
    packages = tomllib.loads((PEERS / "uv.lock").read_text(encoding="utf-8"))["package"]
    return {package["name"]: package["version"] for package in packages if package["name"] in wanted}


def written(told: Mapping[str, Any]) -> str:
    """JSON as it stands in a file."""
    return json.dumps(told, indent=2) + "\n"
