"""The dashboard over the metrics of a real local run: no widget is empty, and the picture can be drawn."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

from watch.__main__ import PICTURE, RECORDED
from watch.dashboard import Widget, widgets
from watch.picture import draw
from watch.recording import Recording
from watch.series import Metrics, Name, WatchError
from watch.template import resources

if TYPE_CHECKING:
    from pathlib import Path

    from watch.alarms import Watch
    from watch.template import Template

SECTIONS = [
    "Is work flowing?",
    "What fails?",
    "What waits?",
    "Outside systems",
    "Cache and locks",
    "What it costs",
]


@pytest.fixture(scope="module")
def recording() -> Recording:
    return Recording.read(RECORDED)


def test_the_sections_answer_in_one_look(template: Template) -> None:
    found = widgets(template)
    assert [widget.title for widget in found if widget.kind == "text"] == SECTIONS
    assert {widget.kind for widget in found[:2]} == {"alarm"}


def test_no_widget_is_empty_in_a_real_run(template: Template, recording: Recording) -> None:
    empty = [
        widget.title
        for widget in widgets(template)
        if widget.kind == "metric" and not any(_has_data(line) for line in _drawn(widget, recording))
    ]
    assert empty == []


def _drawn(widget: Widget, recording: Recording) -> list[list[float | None]]:
    return list(widget.lines_with_data(recording.metrics).values())


def _has_data(line: list[float | None]) -> bool:
    return any(value is not None for value in line)


def test_every_recorded_metric_of_ours_is_of_the_services_of_the_template(recording: Recording) -> None:
    ours = {name for name in recording.metrics.names if name.namespace == "Tahan"}
    services = {value for name in ours for _, value in name.dimensions}
    assert {"payments", "users", "inventory", "invoices", "notifications", "front-door", "outbox-relay"} <= services
    assert len(ours) > 50


def test_a_widget_of_nothing_has_no_data_although_its_sums_are_filled(template: Template) -> None:
    (dead,) = [widget for widget in widgets(template) if widget.title == "Dead letters, being read or not"]
    assert dead.lines_with_data(Metrics(5)) == {}
    assert all(line == [0] * 5 for line in dead.lines(Metrics(5)).values())


def test_every_alarm_of_a_widget_is_one_of_the_template(template: Template, watch: Watch) -> None:
    shown = {name for widget in widgets(template) for name in widget.alarms}
    quiet = {part for composite in watch.composites.values() for part in composite.parts}
    assert shown == (watch.alarms.keys() | watch.composites.keys()) - quiet


def test_the_picture_is_drawn(template: Template, recording: Recording, tmp_path: Path) -> None:
    draw(template, recording, tmp_path / "dashboard.png")
    assert (tmp_path / "dashboard.png").read_bytes().startswith(b"\x89PNG")
    assert PICTURE.read_bytes().startswith(b"\x89PNG")


def test_a_recording_is_read_as_it_was_written(tmp_path: Path) -> None:
    metrics, name = Metrics(3), Name.of("Tahan", "duration", {"service": "s"})
    metrics.put(name, 0, [1.0, 2.5])
    metrics.put(name, 2, [3.0])
    Recording(metrics, 6).write(tmp_path / "r.jsonl")
    read = Recording.read(tmp_path / "r.jsonl")
    assert (read.metrics.minutes, read.minute_seconds) == (3, 6)
    assert read.metrics.samples(name) == {0: [1, 2.5], 2: [3]}


def test_a_template_without_a_dashboard_is_refused(template: Template) -> None:
    copied: dict[str, Any] = copy.deepcopy(template)
    for name in resources(copied, "AWS::CloudWatch::Dashboard"):
        del copied["Resources"][name]
    with pytest.raises(WatchError, match="has 0 dashboards"):
        widgets(copied)
