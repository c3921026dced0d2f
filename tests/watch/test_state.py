"""How missing points are treated: the tables of CloudWatch's user guide, row by row."""

from __future__ import annotations

import pytest

from watch.state import State, decide

OK, ALARM, NONE, KEPT = State.OK, State.ALARM, State.INSUFFICIENT, "kept"
POLICIES = ("missing", "ignore", "breaching", "notBreaching")
POINTS = {"X": True, "0": False, "-": None}
THREE_OF_THREE = [
    ("0 - X - X", (OK, OK, OK, OK)),
    ("- - - - 0", (OK, OK, OK, OK)),
    ("- - - - -", (NONE, KEPT, ALARM, OK)),
    ("0 X X - X", (ALARM, ALARM, ALARM, ALARM)),
    ("- - X - -", (ALARM, KEPT, ALARM, OK)),
]
TWO_OF_THREE = [
    ("0 - X - X", (ALARM, ALARM, ALARM, ALARM)),
    ("0 0 X 0 X", (ALARM, ALARM, ALARM, ALARM)),
    ("0 - X - -", (OK, OK, ALARM, OK)),
    ("- - - - 0", (OK, OK, ALARM, OK)),
    ("- - - X -", (ALARM, KEPT, ALARM, OK)),
]


@pytest.mark.parametrize("before", [OK, ALARM])
@pytest.mark.parametrize(("needed", "rows"), [(3, THREE_OF_THREE), (2, TWO_OF_THREE)])
def test_missing_points_are_treated_as_the_user_guide_tells(
    needed: int, rows: list[tuple[str, tuple[object, ...]]], before: State
) -> None:
    for text, wanted in rows:
        points = [POINTS[point] for point in text.split()]
        for policy, state in zip(POLICIES, wanted, strict=True):
            found = decide(points, needed, 3, policy, before)
            assert found is (before if state == KEPT else state), (text, policy)


def test_real_points_are_taken_before_any_is_filled_in() -> None:
    assert decide([True, True, False, None, None], 2, 3, "notBreaching", OK) is ALARM
    assert decide([False, False, False, None, None], 1, 3, "breaching", OK) is OK


def test_more_real_points_than_are_looked_at_leave_out_the_oldest() -> None:
    assert decide([True, True, False, False, False], 1, 3, "missing", ALARM) is OK
