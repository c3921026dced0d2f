"""When a breaker turns callers away, and who may look whether it may close."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from shared.backends.redis.breaker import Breaker
from tests.world import FakeClock

PAUSE = timedelta(seconds=10)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def breaker(clock: FakeClock) -> Breaker:
    return Breaker(failures=5, pause=PAUSE, monotonic=clock.monotonic)


def fail(breaker: Breaker, times: int) -> None:
    for _ in range(times):
        permit = breaker.enter()
        assert permit is not None
        breaker.failed(permit)


def test_cac_10_it_opens_at_the_fifth_failure_in_a_row_and_not_before(breaker: Breaker) -> None:
    fail(breaker, 5)
    assert breaker.enter() is None


def test_an_answer_begins_the_count_anew(breaker: Breaker) -> None:
    fail(breaker, 4)
    permit = breaker.enter()
    assert permit is not None
    breaker.answered(permit)
    fail(breaker, 4)
    assert breaker.enter() is not None


def test_while_it_is_open_nobody_enters_until_the_pause_is_over(breaker: Breaker, clock: FakeClock) -> None:
    fail(breaker, 5)
    clock.pass_(PAUSE - timedelta(milliseconds=1))
    assert breaker.enter() is None
    clock.pass_(timedelta(milliseconds=1))
    assert breaker.enter() is not None


def test_a_look_that_hangs_lets_nobody_else_in_however_long_it_takes(breaker: Breaker, clock: FakeClock) -> None:
    fail(breaker, 5)
    clock.pass_(PAUSE)
    assert breaker.enter() is not None
    clock.pass_(100 * PAUSE)
    assert breaker.enter() is None


def test_of_many_threads_one_looks(breaker: Breaker, clock: FakeClock) -> None:
    fail(breaker, 5)
    clock.pass_(PAUSE)
    start = threading.Barrier(20)
    entered: list[int | None] = []

    def enter() -> None:
        start.wait()
        entered.append(breaker.enter())

    threads = [threading.Thread(target=enter) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(permit is not None for permit in entered) == 1


def test_a_look_in_vain_opens_it_for_another_pause(breaker: Breaker, clock: FakeClock) -> None:
    fail(breaker, 5)
    clock.pass_(PAUSE)
    fail(breaker, 1)
    clock.pass_(PAUSE - timedelta(milliseconds=1))
    assert breaker.enter() is None
    clock.pass_(timedelta(milliseconds=1))
    assert breaker.enter() is not None


def test_a_look_that_is_answered_closes_it_with_a_count_of_none(breaker: Breaker, clock: FakeClock) -> None:
    fail(breaker, 5)
    clock.pass_(PAUSE)
    permit = breaker.enter()
    assert permit is not None
    breaker.answered(permit)
    fail(breaker, 4)
    assert breaker.enter() is not None


def test_a_look_that_ends_without_finding_out_leaves_it_to_the_next(breaker: Breaker, clock: FakeClock) -> None:
    fail(breaker, 5)
    clock.pass_(PAUSE)
    permit = breaker.enter()
    assert permit is not None
    breaker.withdrew(permit)
    assert breaker.enter() is not None
    assert breaker.enter() is None


def test_what_began_before_it_opened_has_nothing_to_say_afterwards(breaker: Breaker, clock: FakeClock) -> None:
    late = breaker.enter()
    assert late is not None
    fail(breaker, 5)
    breaker.answered(late)
    assert breaker.enter() is None
    clock.pass_(PAUSE)
    look = breaker.enter()
    assert look is not None
    breaker.failed(late)  # nor does it end the look of another
    breaker.withdrew(late)
    assert breaker.enter() is None
    breaker.answered(look)
    assert breaker.enter() is not None
