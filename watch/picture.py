"""Draws the dashboard of a template over recorded metrics, as CloudWatch would lay it out."""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.figure import Figure

from watch.alarms import Watch
from watch.dashboard import widgets
from watch.state import State

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes

    from watch.dashboard import Widget
    from watch.recording import Recording
    from watch.template import Template

HEADROOM = 1.4  # for the legend
CELL = (0.75, 0.36)  # inches of a column and a row
COLORS = {State.OK: "#2f9e44", State.ALARM: "#e03131", State.INSUFFICIENT: "#868e96"}


def draw(template: Template, recording: Recording, file: Path) -> None:
    """Draw all widgets into one picture."""
    found = widgets(template)
    rows = max(y + height for _, y, _, height in (widget.box for widget in found))
    columns = max(x + width for x, _, width, _ in (widget.box for widget in found))
    states = {name: states[-1] for name, states in Watch.of(template).histories(recording.metrics).items()}
    with mpl.rc_context(
        {"font.size": 8, "axes.titlesize": 9, "axes.titleweight": "bold", "axes.titlelocation": "left"}
    ):
        figure = Figure(figsize=(columns * CELL[0], rows * CELL[1]), facecolor="white")
        for widget in found:
            axes = figure.add_axes(_inside(widget, columns, rows))
            if widget.kind == "text":
                axes.axis("off")
                axes.text(0, 0, widget.title, fontsize=14, fontweight="bold", transform=axes.transAxes)
            elif widget.kind == "alarm":
                _alarms(axes, widget, states)
            else:
                _graph(axes, widget, recording)
        figure.text(0.995, 0.002, f"in minutes of {recording.minute_seconds:g} s", ha="right", fontsize=7)
        figure.savefig(file, dpi=80, metadata={"Software": None})


def _inside(widget: Widget, columns: int, rows: int) -> tuple[float, float, float, float]:
    """The place of its axes in the picture, with room for title and ticks: left, bottom, width and height."""
    x, y, width, height = widget.box
    if widget.kind == "text":
        return (x + 0.2) / columns, 1 - (y + height - 0.2) / rows, (width - 0.4) / columns, 0.6 / rows
    return (x + 0.8) / columns, 1 - (y + height - 0.8) / rows, (width - 1.0) / columns, (height - 1.8) / rows


def _graph(axes: Axes, widget: Widget, recording: Recording) -> None:
    axes.set_title(widget.title)
    axes.grid(visible=True, color="#dee2e6", linewidth=0.5)
    lines = widget.lines_with_data(recording.metrics)
    for label, line in lines.items():
        values = [nan if value is None else value for value in line]
        axes.plot(range(len(values)), values, marker=".", markersize=3, linewidth=1.2, label=label)
    axes.set_xlim(0, recording.metrics.minutes)
    axes.set_ylim(bottom=0, top=axes.get_ylim()[1] * HEADROOM)
    axes.tick_params(labelsize=6, pad=2)
    if widget.unit:
        axes.set_ylabel(widget.unit, fontsize=6)
    if lines:
        axes.legend(fontsize=6, frameon=False, ncols=2, loc="upper left")


def _alarms(axes: Axes, widget: Widget, states: dict[str, State]) -> None:
    """A square for each alarm, and the names of those that ring."""
    axes.axis("off")
    mine = sorted((states[name], name) for name in widget.alarms)
    ringing = [name for state, name in mine if state is State.ALARM]
    axes.set_title(f"{widget.title}: {len(ringing)} of {len(mine)}")
    wide = 20
    for place, (state, _) in enumerate(mine):
        axes.scatter(place % wide, -(place // wide), marker="s", s=60, color=COLORS[state])
    axes.set_xlim(-1, 2 * wide)
    axes.set_ylim(-6, 1)
    for place, name in enumerate(ringing[:10]):
        axes.text(
            wide + 0.5,
            -0.65 * place,
            name[:-8].replace("Alarms", " "),
            fontsize=7,
            color=COLORS[State.ALARM],
            va="center",
        )
