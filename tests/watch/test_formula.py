"""Metric math: what is known gives CloudWatch's results, what is not is refused by name."""

from __future__ import annotations

import pytest

from watch.formula import evaluate
from watch.series import Metrics, Name, WatchError, compute
from watch.usual import Usual

A: list[float | None] = [1, 2, None, 4]
B: list[float | None] = [0, 1, 1, None]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a + b * 2", [1, 4, None, None]),
        ("(a + b) * 2", [2, 6, None, None]),
        ("a / b", [None, 2, None, None]),
        ("-a - 1.5", [-2.5, -3.5, None, -5.5]),
        ("FILL(a, 0)", [1, 2, 0, 4]),
        ("FILL(b, a)", [0, 1, 1, 4]),
        ("DIFF(a)", [None, 1, None, None]),
        ("DIFF(FILL(a, 0))", [None, 1, -2, 4]),
        ("IF(a > 1, 10, 20)", [20, 10, None, 10]),
        ("IF(FILL(b, 0) > 0, a, 0)", [0, 2, None, 0]),
        ("a >= 2 AND FILL(b, 0) < 1", [0, 0, None, 1]),
        ("a > 3 OR b > 0", [0, 1, None, None]),
        ("a != 2", [1, 0, None, 1]),
        ("1e3 * a", [1000, 2000, None, 4000]),
    ],
)
def test_an_expression_is_computed_point_by_point(text: str, wanted: list[float | None]) -> None:
    assert evaluate(text, {"a": A, "b": B}, 1) == wanted


def test_the_point_before_lies_a_period_back() -> None:
    assert evaluate("DIFF(a)", {"a": [1.0, 2.0, 4.0, 8.0]}, 2) == [None, None, 3, 6]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("ANOMALY_DETECTION_BAND(a, 2)", "ANOMALY_DETECTION_BAND with 2 arguments is a function"),
        ("SEARCH(a)", "SEARCH with 1 arguments is a function"),
        ("FILL(a)", "FILL with 1 arguments"),
        ("a % b", "'%' is an operator"),
        ("a + c", "'c' is no id"),
        ("a b", "'b' is not expected"),
        ("(a + b", "is expected"),
        ("a +", "ends too early"),
    ],
)
def test_what_is_not_known_is_refused_by_name(text: str, named: str) -> None:
    with pytest.raises(WatchError, match=named):
        evaluate(text, {"a": A, "b": B}, 1)


def test_statistics_are_of_all_samples_of_a_moving_period() -> None:
    name, metrics = Name.of("Tahan", "duration", {"service": "s"}), Metrics(4)
    for minute, samples in enumerate(([1, 2], [], [9], [])):
        metrics.put(name, minute, samples)
    assert metrics.line(name, "Sum", 1) == [3, None, 9, None]
    assert metrics.line(name, "Maximum", 2) == [2, 2, 9, 9]
    assert metrics.line(name, "SampleCount", 3) == [2, 2, 3, 1]
    assert metrics.line(name, "Average", 4) == [1.5, 1.5, 4, 4]
    assert compute("p95", list(range(1, 101))) == 95
    assert compute("p99.9", [1, 2, 3]) == 3
    assert compute("Minimum", [3, 2]) == 2
    with pytest.raises(WatchError, match="'median' is a statistic"):
        compute("median", [1])


def test_a_sample_that_is_no_finite_number_is_refused() -> None:
    with pytest.raises(WatchError, match="no finite number"):
        Metrics(1).put(Name.of("Tahan", "duration", {}), 0, [float("nan")])


def test_a_band_follows_the_hours_of_a_day() -> None:
    day: list[float | None] = [None] * 600 + [100.0] * 840
    usual = Usual.of(day)
    assert usual.upper(3, 2, 0) == [None, None]
    assert usual.upper(3, 2, 720) == [130, 130]  # nothing is so even: a tenth of it is spread
