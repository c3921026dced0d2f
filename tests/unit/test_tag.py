"""Versions order exactly, also as text and far beyond what a double can hold."""

from __future__ import annotations

from random import Random

import pytest

from shared.errors import Refused
from shared.tag import Tag, Version

LARGE = 2**53


def test_cac_03_versions_are_ordered_by_epoch_first_and_exactly_beyond_2_to_the_53() -> None:
    ascending = [
        Version(0),
        Version(9),
        Version(10),
        Version(LARGE),
        Version(LARGE + 1),
        Version(LARGE + 2),
        Version(10**98),
        Version(0, epoch=1),
        Version(8, epoch=9),
        Version(1, epoch=10),
        Version(2, epoch=LARGE + 1),
    ]
    texts = [version.text for version in ascending]
    shuffled = Random(5).sample(ascending, len(ascending))  # noqa: S311 - repeatable
    assert sorted(shuffled) == ascending
    assert sorted(texts) == texts
    assert [Version.read(text) for text in texts] == ascending


def test_text_orders_any_two_versions_as_the_versions_do() -> None:
    random = Random(7)  # noqa: S311 - repeatable

    def drawn() -> Version:
        return Version(random.randrange(10 ** random.randint(1, 40)), random.randrange(10 ** random.randint(1, 3)))

    for _ in range(2000):
        one, other = drawn(), drawn()
        assert (one < other, one == other) == (one.text < other.text, one.text == other.text)


@pytest.mark.parametrize("text", ["", "0", "01", "0101", "01002", "020501", "010015x", "01001x", "010-11", "abc"])
def test_what_is_no_version_s_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no version|invalid literal"):
        Version.read(text)


@pytest.mark.parametrize("number", [-1, True, "7", 1.0, 10**99, None])
def test_a_version_that_cannot_be_written_is_refused(number: int) -> None:
    with pytest.raises(Refused):
        Version(number)
    with pytest.raises(Refused):
        Version(1, epoch=number)


def test_the_higher_floor_of_two_tags_holds() -> None:
    low, high, none = Tag("t", Version(9)), Tag("t", Version(1, epoch=1)), Tag("t")
    assert low.joined(high) == high.joined(low) == high
    assert low.joined(none) == none.joined(low) == low
    assert none.joined(none) == none
