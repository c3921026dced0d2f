"""How CloudWatch decides the state of an alarm from its last points.

It looks a little farther back than the alarm says, takes real points before it fills any in, and fills in as few as it can.
Source: CloudWatch user guide, "Configuring how CloudWatch alarms treat missing data"; its tables are tests of this module.
How much farther it looks is not told; by those tables it is two points.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

FARTHER = 2


class State(StrEnum):
    """States of an alarm."""

    OK = "OK"
    ALARM = "ALARM"
    INSUFFICIENT = "INSUFFICIENT_DATA"


def decide(points: Sequence[bool | None], needed: int, of: int, missing: str, before: State) -> State:
    """The state after the last of `points`.

    Args:
        points: the oldest first; whether each breaches, None where there is no data. As many as are looked at: `of + FARTHER`.
        needed: as many must breach.
        of: of so many.
        missing: what a point without data means.
        before: the state so far.
    """
    real = [point for point in points if point is not None]
    if len(real) >= of:
        return State.ALARM if sum(real[-of:]) >= needed else State.OK
    if missing == "breaching":
        return State.ALARM if sum(real) + of - len(real) >= needed else State.OK
    if sum(real) >= needed:
        return State.ALARM
    if missing == "notBreaching":
        return State.OK
    kept = before if missing == "ignore" else None
    if not real:
        return kept or State.INSUFFICIENT
    # All that is known breaches, and has for as long as it takes: that is not left to data that may never come.
    oldest = next(place for place, point in enumerate(points) if point is not None)
    if all(real) and len(points) - oldest >= needed:
        return kept or State.ALARM
    return State.OK
