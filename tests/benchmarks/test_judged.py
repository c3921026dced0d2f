"""What samples say: ratios of the same round, intervals, targets and falls."""

from __future__ import annotations

import pytest

from benchmarks.declared import Figure, Measure, Of, Sample, Target
from benchmarks.judged import Found, complaints, has_fallen, interval, is_lost, is_met

FEWER = Figure("fewer", "time", "µs", "peer", Target(at_most=0.85), tolerance=0.1)
MORE = Figure("more", "jobs", "jobs a second", "peer", Target(at_least=1.0), more_is_better=True, tolerance=0.1)
COUNT = Figure("count", "calls", "a job", "peer", Target(Of.OURS, at_most=2), tolerance=0.0)
MEASURE = Measure("m", "title", "how", (FEWER, MORE, COUNT), run=lambda _: {})
GOOD = {"fewer": Found(8, 10, 0.8), "more": Found(12, 10, 1.2), "count": Found(2, 3, 2 / 3)}


def test_a_ratio_is_the_median_of_the_ratios_of_each_round() -> None:
    found = Found.of(Sample((1, 20, 3), (2, 10, 3)))
    assert (found.ours, found.peer, found.ratio, found.rounds) == (3, 3, 1, 3)


def test_rounds_that_one_side_has_not_are_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        Found.of(Sample((1, 2), (1,)))


def test_a_figure_without_a_peer_has_no_ratio_and_is_judged_by_itself() -> None:
    found = Found.of(Sample((4, 2, 3)))
    assert (found.ours, found.ratio, found.value(Of.RATIO)) == (3, None, 3)


def test_the_interval_holds_the_median_and_is_the_same_each_time() -> None:
    values = [0.7, 0.8, 0.8, 0.9, 1.4]
    low, high = interval(values)
    assert 0.7 <= low <= 0.8 <= high <= 1.4
    assert interval(values) == (low, high)


def test_equal_rounds_have_no_spread() -> None:
    assert interval([0.5] * 4) == (0.5, 0.5)


@pytest.mark.parametrize(
    ("figure", "found", "met"),
    [
        (FEWER, Found(1, 1, 0.85), True),
        (FEWER, Found(1, 1, 0.86), False),
        (MORE, Found(1, 1, 1.0), True),
        (MORE, Found(1, 1, 0.99), False),
        (COUNT, Found(2, 1, 2.0), True),
        (COUNT, Found(2.1, 3, 0.7), False),
        (Figure("shown", "w", "u", "p"), Found(9, 1, 9), None),
    ],
)
def test_a_target_is_a_bound_on_the_ratio_or_on_ours(figure: Figure, found: Found, met: bool | None) -> None:
    assert is_met(figure, found) is met


@pytest.mark.parametrize(
    ("figure", "now", "kept", "fallen"),
    [
        (FEWER, 0.55, 0.5, False),
        (FEWER, 0.56, 0.5, True),
        (FEWER, 0.1, 0.5, False),
        (MORE, 1.8, 2.0, False),
        (MORE, 1.79, 2.0, True),
        (MORE, 9.0, 2.0, False),
    ],
)
def test_a_fall_is_worse_than_the_kept_ratio_by_more_than_the_tolerance(
    figure: Figure, now: float, kept: float, fallen: bool
) -> None:
    assert has_fallen(figure, Found(1, 1, now), Found(1, 1, kept)) is fallen


def test_a_count_that_is_one_more_has_fallen_whatever_the_peer_asks() -> None:
    assert has_fallen(COUNT, Found(3, 9, 0.3), Found(2, 3, 0.7))


def test_a_peer_that_is_better_is_a_loss_and_a_yardstick_is_no_peer() -> None:
    assert is_lost(Figure("f", "w", "u", "p"), Found(2, 1, 2.0))
    assert is_lost(Figure("f", "w", "u", "p", more_is_better=True), Found(1, 2, 0.5))
    assert not is_lost(Figure("f", "w", "u", "p", yardstick=True), Found(2, 1, 2.0))
    assert is_lost(FEWER, Found(9, 10, 0.9))
    assert not is_lost(FEWER, Found(8, 10, 0.8))


def test_nothing_is_said_where_all_is_as_it_was() -> None:
    assert complaints([MEASURE], {"m": GOOD}, {"m": GOOD}) == []


def test_each_miss_each_fall_and_each_gap_is_said_with_its_name() -> None:
    found = {"fewer": Found(9, 10, 0.9), "more": Found(10, 10, 1.0)}
    assert complaints([MEASURE], {"m": found}, {"m": GOOD}) == [
        "m/fewer misses its target: 0.9, ≤ 0.85 is asked",
        "m/fewer has fallen: 0.9, kept is 0.8 and 10% are tolerated",
        "m/more has fallen: 1, kept is 1.2 and 10% are tolerated",
        "m/count was not measured",
    ]


def test_a_measure_that_was_not_asked_for_is_not_missed() -> None:
    assert complaints([MEASURE], {}, {"m": GOOD}) == []
