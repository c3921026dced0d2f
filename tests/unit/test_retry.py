"""How many attempts an error may use up; waits with full jitter."""

from __future__ import annotations

from datetime import timedelta
from random import Random

from shared.classification import Kind
from shared.retry import Retry

TRANSIENT, PERMANENT, UNKNOWN = Kind.TRANSIENT, Kind.PERMANENT, Kind.UNKNOWN


def test_waits_double_up_to_the_cap_and_are_spread_over_all_of_it() -> None:
    retry = Retry(base=timedelta(seconds=10), cap=timedelta(minutes=1))
    random = Random(1)  # noqa: S311 - repeatable
    for attempt, ceiling in ((1, 10), (2, 20), (3, 40), (4, 60), (90, 60)):
        waits = [retry.wait(attempt, random).total_seconds() for _ in range(2000)]
        assert 0 < min(waits) < ceiling * 0.05
        assert ceiling * 0.95 < max(waits) <= ceiling
        tenth = sum(wait <= ceiling / 10 for wait in waits)
        assert 120 < tenth < 280  # a tenth of 2000, give or take


def test_the_longest_strategy_has_a_wait_too() -> None:
    retry = Retry(max_attempts=100, base=timedelta(hours=1), cap=timedelta(hours=12))
    assert timedelta(0) < retry.wait(100, Random(1)) <= timedelta(hours=12)  # noqa: S311 - repeatable


def test_a_permanent_error_has_one_attempt_and_an_unknown_one_few() -> None:
    retry = Retry(max_attempts=5, unknown_attempts=3)
    assert [retry.attempts_for(kind) for kind in (TRANSIENT, UNKNOWN, PERMANENT)] == [5, 3, 1]
    assert Retry(max_attempts=2).attempts_for(UNKNOWN) == 2
