"""The short form of the outage drill, and what it would find in a product without its guards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shared.backends.memory.gates import MemoryGates
from shared.work.way import Way
from tests.drills.outage import Drill, Report

if TYPE_CHECKING:
    import pytest


def played(minutes: float = 8, per_second: float = 1) -> Report:
    return Drill(minutes, per_second).run()


def test_i41_i42_an_outage_costs_nothing_and_ends_without_a_spike() -> None:
    told: list[float] = []
    report = Drill(8, 1.5).run(told.append)
    assert report.problems == []
    assert report.jobs > 1000
    assert report.completed == report.jobs
    assert report.calls_while_down <= 20  # five that open it, and a look now and then
    assert report.paused > 120
    assert report.deploys > 1
    assert told == sorted(told)
    assert told[-1] == 1


def test_the_drill_notices_attempts_that_an_outage_spends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Way, "excuses", lambda self, dependency: False)
    assert any("spent an attempt" in problem for problem in played().problems)


def test_the_drill_notices_all_that_waited_coming_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemoryGates, "_pace", staticmethod(lambda _gate, _state, _now: (0.0, 1)))
    assert any("declared rate" in problem for problem in played(12, 6).problems)
