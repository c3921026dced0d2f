"""What measures work with: rounds in turn, schedules, meters, and the server that answers at once."""

from __future__ import annotations

import json
import zlib
from random import Random

import pytest

from benchmarks.bench import Bench, each, p50, percentile
from benchmarks.load import Load, Meter
from benchmarks.measures.arrivals import SECONDS, arrivals
from benchmarks.stub import BLANK_LINE, answer
from shared.backends.dynamodb.job_record_item import read_view
from shared.job_record import Status


def test_each_side_takes_one_turn_in_a_round_and_the_first_round_is_not_counted() -> None:
    taken: list[str] = []
    shares: list[float] = []

    def side(name: str) -> int:
        taken.append(name)
        return len(taken)

    bench = Bench(random=Random(3), progress=shares.append)  # noqa: S311 - repeatable
    found = bench.rounds({"a": lambda: side("a"), "b": lambda: side("b")}, 4)
    assert {name: len(values) for name, values in found.items()} == {"a": 4, "b": 4}
    assert all(sorted(taken[place : place + 2]) == ["a", "b"] for place in range(0, 10, 2))
    assert min(min(values) for values in found.values()) > 2
    assert shares == [0, 0.25, 0.5, 0.75, 1]


def test_times_are_taken_by_the_clock_that_is_given() -> None:
    ticks = iter([0, 1, 10, 12, 20, 23])
    assert each(lambda: None, 3, lambda: next(ticks)) == [1, 2, 3]
    ticks = iter([0, 1, 10, 12, 20, 23])
    assert p50(lambda: None, 3, lambda: next(ticks)) == 2


def test_a_percentile_is_a_value_that_was_seen() -> None:
    values = [float(value) for value in range(1, 101)]
    assert [percentile(values, share) for share in (0.5, 0.95, 0.99)] == [51, 96, 100]
    assert percentile([7.0], 0.99) == 7


def test_a_schedule_is_fixed_by_its_seed_and_ends_in_time() -> None:
    schedule, again = (arrivals(Random(1)) for _ in range(2))  # noqa: S311 - repeatable
    assert schedule == sorted(schedule) == again
    assert schedule[-1] < SECONDS


def test_a_meter_runs_from_the_last_warm_job_to_the_last_of_all() -> None:
    meter = Meter(Load(jobs=20, warm=10, wait=0, guarded=True))
    over = []
    for number in (9, 11, 10):
        meter.ended(number)
        over.append(meter.is_over)
    assert over == [False, False, True]
    assert meter.spent["wall"] > 0


@pytest.mark.parametrize("asks", [True, False])
def test_the_server_that_answers_at_once_tells_of_a_claimed_record_or_of_nothing(asks: bool) -> None:
    head, _, content = answer(b'{"ReturnValues": "ALL_NEW"}' if asks else b"{}").partition(BLANK_LINE)
    assert f"Content-Length: {len(content)}".encode() in head
    assert f"x-amz-crc32: {zlib.crc32(content)}".encode() in head
    told = json.loads(content)
    if asks:
        assert read_view("r", told["Attributes"]).status is Status.RUNNING
    else:
        assert told == {}
