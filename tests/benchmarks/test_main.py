"""`make bench` tells of falls by its status, and keeps only whole runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from benchmarks import __main__ as bench
from benchmarks.judged import Found

if TYPE_CHECKING:
    from pathlib import Path

GOOD = {"wall": Found(20, 10, 2.0, 1.9, 2.1, 20), "cpu": Found(30, 10, 3.0, 2.9, 3.1, 20)}
Run = Callable[..., int]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """`make bench ARGS="--only relay"`, as if it had measured that."""
    monkeypatch.setattr(bench, "KEPT", tmp_path / "kept.json")
    monkeypatch.setattr(bench, "BUILD", tmp_path / "build")
    monkeypatch.setattr(bench, "plot", lambda *_: None)

    def run(found: dict[str, Found], *words: str, failed: tuple[str, ...] = ()) -> int:
        monkeypatch.setattr(bench, "_run_all", lambda *_, **__: ({"relay": found}, list(failed)))
        return bench.main(["--only", "relay", *words])

    return run


def test_a_ratio_that_falls_beyond_its_tolerance_fails_and_is_named(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(GOOD, "--keep") == 0
    assert run({**GOOD, "cpu": Found(26, 10, 2.6)}) == 0
    assert run({**GOOD, "cpu": Found(25, 10, 2.5)}) == 1
    assert "relay/cpu has fallen: 2.5, kept is 3" in capsys.readouterr().out


def test_a_target_that_is_missed_fails(run: Run) -> None:
    assert run({**GOOD, "wall": Found(9, 10, 0.9)}) == 1


def test_a_measure_that_cannot_be_run_fails_and_keeps_nothing(run: Run) -> None:
    assert run(GOOD, "--keep", failed=("relay could not be measured",)) == 1
    assert not bench.KEPT.exists()


def test_a_look_is_not_kept(run: Run) -> None:
    with pytest.raises(SystemExit):
        run(GOOD, "--keep", "--quick")


def test_what_is_kept_is_where_on_what_and_when_it_was_measured(run: Run) -> None:
    run(GOOD, "--keep")
    kept = json.loads(bench.KEPT.read_text())
    assert kept["results"]["relay"]["cpu"]["ratio"] == 3.0
    assert {"machine", "python", "versions", "commit", "date", "seed"} <= kept.keys()
    assert {"celery", "dramatiq", "dogpile-cache", "cashews", "boto3", "redis"} <= kept["versions"].keys()


def test_keeping_a_part_leaves_the_rest_as_it_was(run: Run) -> None:
    bench.KEPT.write_text(json.dumps({"results": {"leases": {"single": {"ours": 1, "ratio": 0.8}}}}))
    run(GOOD, "--keep")
    assert set(json.loads(bench.KEPT.read_text())["results"]) == {"leases", "relay"}
