"""What is written to stdout: JSON lines, and metrics within CloudWatch's limits."""

from __future__ import annotations

import json
import math
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from shared.backends.powertools import PowertoolsTelemetry

if TYPE_CHECKING:
    import pytest


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines() if line]


def test_obs_01_no_value_is_lost_and_no_line_holds_more_than_a_hundred(capsys: pytest.CaptureFixture[str]) -> None:
    telemetry = PowertoolsTelemetry("notes")
    for number in range(250):
        telemetry.took("duration", "note", timedelta(milliseconds=number))
        telemetry.count("succeeded", "note")
    telemetry.flush()
    written = lines(capsys)
    values = [value for line in written for value in line.get("duration", [])]
    assert sorted(values) == [float(number) for number in range(250)]
    assert max(len(line.get("duration", [])) for line in written) <= 100
    assert [line["succeeded"] for line in written if "succeeded" in line] == [[250.0]]


def test_dimensions_are_service_and_job_type_alone(capsys: pytest.CaptureFixture[str]) -> None:
    telemetry = PowertoolsTelemetry("notes")
    for job_type in ("note", "other"):
        telemetry.count("succeeded", job_type)
    telemetry.flush()
    (first, second) = lines(capsys)
    for line in (first, second):
        (metrics,) = line["_aws"]["CloudWatchMetrics"]
        assert metrics["Namespace"] == "Tahan"
        assert sorted(metrics["Dimensions"][0]) == ["job_type", "service"]
    assert (first["job_type"], second["job_type"]) == ("note", "other")


def test_a_flush_begins_anew(capsys: pytest.CaptureFixture[str]) -> None:
    telemetry = PowertoolsTelemetry("notes")
    telemetry.count("succeeded", "note")
    telemetry.flush()
    telemetry.flush()
    assert len(lines(capsys)) == 1


def test_a_line_carries_the_invocation(capsys: pytest.CaptureFixture[str]) -> None:
    telemetry = PowertoolsTelemetry("lines")
    telemetry.invocation("request-7")
    telemetry.job(result="succeeded", message_id="m")
    (line,) = lines(capsys)
    assert (line["function_request_id"], line["result"], line["service"]) == ("request-7", "succeeded", "lines")


def test_obs_01_more_metrics_than_a_line_holds_are_written_in_several(capsys: pytest.CaptureFixture[str]) -> None:
    telemetry = PowertoolsTelemetry("notes")
    for number in range(250):
        telemetry.count(f"metric_{number}", "note", number + 1)
    telemetry.flush()
    written = lines(capsys)
    definitions = [line["_aws"]["CloudWatchMetrics"][0]["Metrics"] for line in written]
    assert max(map(len, definitions)) <= 100
    assert {
        m["Name"]: line[m["Name"]] for line in written for m in line["_aws"]["CloudWatchMetrics"][0]["Metrics"]
    } == {f"metric_{number}": [number + 1] for number in range(250)}


def test_every_line_has_both_sets_of_dimensions_and_finite_numbers_alone(capsys: pytest.CaptureFixture[str]) -> None:
    telemetry = PowertoolsTelemetry("notes")
    for number in range(150):
        telemetry.count(f"metric_{number}", "note")
        telemetry.took("duration", "note", timedelta.max)
    telemetry.flush()
    for line in lines(capsys):
        (metrics,) = line["_aws"]["CloudWatchMetrics"]
        assert [sorted(names) for names in metrics["Dimensions"]] == [["job_type", "service"], ["service"]]
        assert all(math.isfinite(value) for m in metrics["Metrics"] for value in line[m["Name"]])


def test_just_as_much_as_a_line_holds_is_written_without_a_complaint(capsys: pytest.CaptureFixture[str]) -> None:
    telemetry = PowertoolsTelemetry("notes")
    for _ in range(100):
        telemetry.took("duration", "note", timedelta(seconds=1))
    telemetry.flush()
    for number in range(100):
        telemetry.count(f"metric_{number}", "note")
    telemetry.flush()
    assert sum(len(line.get("duration", [])) for line in lines(capsys)) == 100
