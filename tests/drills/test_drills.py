"""The drills in a short form; `make drill` plays them whole."""

from __future__ import annotations

import io

from rich.console import Console

from tests.drills.dead_letters import dead_letters


def test_of_two_causes_the_repaired_one_is_replayed_through_three_kills_and_nothing_is_lost_or_doubled() -> None:
    out = Console(file=io.StringIO(), width=200)
    dead_letters(out, 120)
    assert "killed at copies-sent" in out.file.getvalue()  # type: ignore[attr-defined]
