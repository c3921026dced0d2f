"""Times as distributions."""

from __future__ import annotations

from statistics import fmean

import pytest

from benchmarks.capacity.spread import Spread
from tests.benchmarks.capacity.cases import seeded


def test_the_longest_of_one_is_the_mean() -> None:
    assert Spread.of([0.1, 0.2, 0.6]).longest_of(1) == pytest.approx(0.3)


def test_the_longest_of_two_of_two_values_is_the_larger_in_three_of_four_cases() -> None:
    assert Spread.of([1.0, 3.0]).longest_of(2) == pytest.approx(0.75 * 3 + 0.25 * 1)


def test_what_always_takes_as_long_takes_no_longer_in_a_batch() -> None:
    assert Spread(0.5).longest_of(10) == pytest.approx(0.5)


def test_the_longest_of_many_grows_with_their_number() -> None:
    spread = Spread.of([0.1, 0.2, 0.3, 0.9])
    longest = [spread.longest_of(number) for number in (1, 1.5, 2, 5, 50)]
    assert longest == sorted(longest)
    assert longest[-1] == pytest.approx(0.9, rel=0.01)


def test_draws_have_the_mean() -> None:
    spread, random = Spread.of([0.1, 0.2, 0.6]), seeded(1)
    assert fmean(spread.draw(random) for _ in range(5000)) == pytest.approx(0.3, rel=0.05)
