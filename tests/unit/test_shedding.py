"""Intake that is closed for a while: heard of within seconds, and never because a store does not answer."""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random
from typing import Any

import pytest

from shared.backends.memory.intake import MemoryIntakeStore
from shared.errors import Refused, StoreUnavailable, Unavailable
from shared.intake.shedding import FRESH, LONGEST_TOLD, Closed, Shedding
from tests.world import START, FakeClock

HOUR = timedelta(hours=1)


class Counted(MemoryIntakeStore):
    """A store that counts, and that may not answer."""

    asked = 0
    gone = False

    def closed(self, job_type: str) -> Closed | None:
        type(self).asked += 1
        if type(self).gone:
            raise StoreUnavailable("gone")
        return super().closed(job_type)


class Case:
    """Intake before a store that counts."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        Counted.asked, Counted.gone = 0, False
        self.store = Counted()
        self.shedding = Shedding(self.store, self.clock, Random(1))  # noqa: S311 - repeatable

    def close(self, left: timedelta) -> None:
        self.store.close("note", Closed(self.clock.now() + left, "an incident"))

    def is_open(self, job_type: str = "note") -> bool:
        try:
            self.shedding.check(job_type)
        except Unavailable:
            return False
        return True


def test_r3_7_what_is_closed_is_told_when_to_come_again_and_opens_by_itself() -> None:
    case = Case()
    case.close(timedelta(minutes=2))
    with pytest.raises(Unavailable) as caught:
        case.shedding.check("note")
    assert caught.value.after is not None
    assert timedelta(minutes=2) <= caught.value.after <= timedelta(minutes=2.5)
    assert case.is_open("other")
    case.clock.pass_(timedelta(minutes=2))
    assert case.is_open()


def test_nobody_is_sent_away_for_as_long_as_an_incident_may_last() -> None:
    case = Case()
    case.close(24 * HOUR)
    waits = []
    for _ in range(20):
        with pytest.raises(Unavailable) as caught:
            case.shedding.check("note")
        assert caught.value.after is not None
        waits.append(caught.value.after)
    assert max(waits) <= 1.25 * LONGEST_TOLD
    assert len(set(waits)) == 20  # they do not come again in one moment


def test_an_operators_word_is_heard_within_seconds_and_the_store_asked_once_in_them() -> None:
    case = Case()
    assert [case.is_open() for _ in range(10)] == [True] * 10
    case.close(HOUR)
    assert case.is_open()
    assert case.store.asked == 1
    case.clock.pass_(FRESH)
    assert [case.is_open() for _ in range(10)] == [False] * 10
    case.store.open("note")
    case.clock.pass_(FRESH)
    assert case.is_open()
    assert case.store.asked == 3


@pytest.mark.parametrize("closed", [False, True])
def test_a_store_that_does_not_answer_changes_nothing_and_is_not_asked_by_each_request(closed: bool) -> None:
    case = Case()
    if closed:
        case.close(HOUR)
    assert case.is_open() is not closed
    Counted.gone = True
    case.clock.pass_(FRESH)
    assert [case.is_open() for _ in range(5)] == [not closed] * 5
    assert case.store.asked == 2


def test_a_store_that_never_answered_closes_nothing() -> None:
    case = Case()
    Counted.gone = True
    assert case.is_open()


def test_a_moment_without_a_time_zone_is_refused() -> None:
    naive: Any = datetime(2026, 1, 1)  # noqa: DTZ001 - what is refused
    with pytest.raises(Refused, match="time zone"):
        Closed(naive, "x")
    assert Closed(START, "x").until == START
