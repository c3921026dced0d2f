"""Failpoints: nothing happens at them unless a test asks for it, and nothing but a test can."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from shared.failpoints import Failpoint, armed, failpoint

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = [path for top in ("shared", "functions", "infra", "local", "ops") for path in (ROOT / top).rglob("*.py")]
SOURCES = {path: path.read_text(encoding="utf-8") for path in PRODUCT if "standin" not in path.parts}


def test_off_a_failpoint_does_nothing() -> None:
    assert all(failpoint(point) is None for point in Failpoint)  # type: ignore[func-returns-value]


def test_armed_it_does_what_the_test_asks_for_and_afterwards_nothing_again() -> None:
    passed: list[Failpoint] = []
    with armed(passed.append):
        failpoint(Failpoint.CLAIMED)
        with pytest.raises(TimeoutError), armed(lambda _: (_ for _ in ()).throw(TimeoutError)):
            failpoint(Failpoint.COMMITTED)
        failpoint(Failpoint.HANDLED)
    failpoint(Failpoint.SENT_ANEW)
    assert passed == [Failpoint.CLAIMED, Failpoint.HANDLED]


def test_each_failpoint_stands_in_the_product() -> None:
    text = "".join(SOURCES.values())
    assert [point.name for point in Failpoint if f"failpoint(Failpoint.{point.name})" not in text] == []


def test_nothing_in_the_product_arms_failpoints() -> None:
    allowed = ROOT / "shared" / "failpoints.py"
    assert [
        path for path, text in SOURCES.items() if path != allowed and re.search(r"\barmed\b|\b_action\b", text)
    ] == []
