"""`make bench` tells of falls by its status, and keeps only whole runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from benchmarks import __main__ as bench
from benchmarks.judged import Found
from benchmarks.measures import relay

if TYPE_CHECKING:
    from pathlib import Path

GOOD = {"wall": Found(20, 10, 2.0, 1.9, 2.1, 20), "cpu": Found(30, 10, 3.0, 2.9, 3.1, 20)}
Run = Callable[..., int]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """`make bench` of one measure, as if it had measured that."""
    monkeypatch.setattr(bench, "KEPT", tmp_path / "kept.json")
    monkeypatch.setattr(bench, "BUILD", tmp_path / "build")
    monkeypatch.setattr(bench, "MEASURES", [relay.MEASURE])
    monkeypatch.setattr(bench, "plot", lambda *_: None)

    def run(found: dict[str, Found], *words: str, failed: tuple[str, ...] = ()) -> int:
        monkeypatch.setattr(bench, "_run_all", lambda *_, **__: ({"relay": found}, list(failed)))
        return bench.main(words)

    return run


def test_a_ratio_that_falls_beyond_its_tolerance_fails_and_is_named(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(GOOD, "--keep") == 0
    assert run({**GOOD, "cpu": Found(26, 10, 2.6)}) == 0
    assert run({**GOOD, "cpu": Found(25, 10, 2.5)}) == 1
    assert "relay/cpu has fallen: 2.5, kept is 3" in capsys.readouterr().out


def test_a_target_that_is_missed_fails(run: Run) -> None:
    assert run(GOOD) == 0
    assert run({**GOOD, "wall": Found(9, 10, 0.9)}) == 1


def test_a_measure_that_cannot_be_run_fails_and_keeps_nothing(run: Run) -> None:
    assert run(GOOD, "--keep", failed=("relay could not be measured",)) == 1
    assert not bench.KEPT.exists()


@pytest.mark.parametrize("words", [("--quick",), ("--only", "relay")])
def test_a_look_or_a_part_is_not_kept(run: Run, words: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit):
        run(GOOD, "--keep", *words)


def test_what_is_kept_is_where_on_what_and_when_it_was_measured(run: Run) -> None:
    run(GOOD, "--keep")
    kept = json.loads(bench.KEPT.read_text())
    assert kept["results"]["relay"]["cpu"]["ratio"] == 3.0
    assert {"machine", "python", "versions", "commit", "date", "seed"} <= kept.keys()
    assert {"celery", "dramatiq", "dogpile-cache", "cashews", "boto3", "redis"} <= kept["versions"].keys()
