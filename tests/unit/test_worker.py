"""A worker's numbers, and the combinations that AWS refuses or that lose messages."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from shared.dependency import Dependency
from shared.errors import DeclarationError
from shared.rate import Rate
from shared.retry import Retry
from shared.table import Table
from shared.worker import Worker
from tests.world import THINGS, note_job

SECOND = timedelta(seconds=1)


def worker(*, timeout: int = 30, **options: Any) -> Worker:
    declared = note_job(timeout=timeout * SECOND, max_latency=timedelta(hours=1))
    return Worker("notes", jobs=(declared,), **options)


def test_bat_01_visibility_is_six_function_timeouts_and_the_window() -> None:
    made = worker(timeout=30, window=20 * SECOND)
    assert made.function_timeout == 40 * SECOND
    assert made.visibility_timeout == 260 * SECOND


def test_bat_01_a_lower_visibility_is_refused_with_both_numbers() -> None:
    with pytest.raises(DeclarationError, match=r"240 s.*260 s"):
        worker(timeout=30, window=20 * SECOND, visibility=240 * SECOND)


def test_bat_01_the_longest_function_and_window_still_fit() -> None:
    made = worker(timeout=890, window=300 * SECOND)
    assert (made.function_timeout, made.visibility_timeout) == (900 * SECOND, 5700 * SECOND)


def test_bat_01_a_visibility_over_twelve_hours_is_refused() -> None:
    with pytest.raises(DeclarationError, match="43200"):
        worker(visibility=43_201 * SECOND)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"batch_size": 100, "batch_concurrency": 100}, "1 to 300 seconds"),
        ({"fifo": True, "window": 5 * SECOND}, "no batching window"),
        ({"fifo": True, "batch_size": 11}, "1 to 10"),
        ({"window": 301 * SECOND}, "0 to 300"),
        ({"window": timedelta(milliseconds=1500)}, "whole seconds"),
        ({"batch_size": 10_001, "window": SECOND}, "1 to 10000"),
        ({"batch_size": 0}, "1 to 10000"),
        ({"batch_concurrency": 0}, "1 or more"),
        ({"batch_concurrency": 201}, "200 at the most"),
        ({"batch_size": 2.5}, "whole number"),
        ({"batch_size": True}, "whole number"),
        ({"margin": timedelta(0)}, "leaves no time"),
    ],
    ids=str,
)
def test_bat_14_illegal_batches_are_refused_with_the_range(options: dict[str, Any], says: str) -> None:
    with pytest.raises(DeclarationError, match=says):
        worker(**options)


def test_bat_14_a_large_batch_with_a_window_is_legal() -> None:
    assert worker(batch_size=100, batch_concurrency=100, window=5 * SECOND).rounds == 1
    assert worker(batch_size=100, window=5 * SECOND).rounds == 10


def test_a_fifo_batch_may_be_one_group_and_runs_one_after_another() -> None:
    made = worker(fifo=True, batch_size=5)
    assert (made.rounds, made.function_timeout) == (5, 160 * SECOND)


def test_a_batch_that_cannot_be_run_in_time_is_refused_with_the_arithmetic() -> None:
    with pytest.raises(DeclarationError, match=r"10 rounds x 120 s \+ margin 10 s = 1210 s, Lambda allows 900 s"):
        worker(timeout=120, batch_concurrency=1)


@pytest.mark.parametrize("number", [1, 1001])
def test_bat_08_maximum_concurrency_is_two_to_a_thousand(number: int) -> None:
    with pytest.raises(DeclarationError, match="2 to 1000"):
        worker(max_concurrency=number)


def test_bat_08_a_small_reserved_concurrency_is_refused() -> None:
    with pytest.raises(DeclarationError, match="never ran"):
        worker(max_concurrency=10, reserved_concurrency=3)


def test_i19_an_hour_of_postponements_fits_below_the_maximum_of_receives() -> None:
    made = worker()
    assert made.max_receive_count == 3 + 120
    many = Worker("notes", jobs=(note_job(retry=Retry(max_attempts=100)),))
    assert many.max_receive_count == 220


def test_a_worker_needs_a_job_a_plain_name_and_one_shape_a_table() -> None:
    with pytest.raises(DeclarationError, match="at least one job"):
        Worker("notes", jobs=())
    with pytest.raises(DeclarationError, match="lower case"):
        Worker("Notes", jobs=(note_job(),))
    other = note_job(uses=(Table("things", key="other").read,))
    with pytest.raises(DeclarationError, match=r"declared twice|two ways"):
        Worker("notes", jobs=(note_job(), other))
    shops = [note_job(uses=(Dependency("shop", 5 * SECOND, rate=rate),)) for rate in (None, Rate(10))]
    object.__setattr__(shops[1], "name", "other")
    with pytest.raises(DeclarationError, match="dependency 'shop' is declared in two ways"):
        Worker("notes", jobs=tuple(shops))
    with pytest.raises(DeclarationError, match="memory"):
        worker(memory=64)


def test_the_widest_right_to_a_table_counts() -> None:
    assert worker().accesses == (THINGS.read_write,)


def test_pace_is_remembered_and_shortens() -> None:
    paced = worker().at_pace(0.1)
    assert (paced.pace, paced.function_timeout, paced.visibility_timeout) == (0.1, 4 * SECOND, 24 * SECOND)
    made = worker()
    assert made.at_pace(1) is made


def test_pace_leaves_a_visibility_legal_that_was_the_least() -> None:
    made = worker(timeout=95, window=60 * SECOND, visibility=690 * SECOND)
    paced = made.at_pace(0.1)
    assert paced.function_timeout == 11 * SECOND
    assert paced.visibility_timeout == paced.least_visibility == 126 * SECOND
    assert worker(timeout=30, visibility=2400 * SECOND).at_pace(0.1).visibility_timeout == 240 * SECOND


def test_a_heartbeat_is_refused_that_one_thread_could_not_keep_for_a_whole_batch() -> None:
    declared = note_job(heartbeat=10 * SECOND, timeout=60 * SECOND, max_latency=timedelta(hours=1))
    options: dict[str, Any] = {"batch_concurrency": 50, "window": SECOND}
    made = Worker("notes", jobs=(declared,), batch_size=100, **options)
    assert made.at_pace(0.1).pace == 0.1
    with pytest.raises(DeclarationError, match=r"101 messages.*10\.1 s.*heartbeat of 10 s"):
        Worker("notes", jobs=(declared,), batch_size=101, **options)
