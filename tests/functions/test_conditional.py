"""What the headers of conditional requests mean."""

from __future__ import annotations

import pytest

from functions.http.conditional import read_etags
from shared.errors import Malformed


@pytest.mark.parametrize(
    ("header", "has", "names"),
    [
        ('"7"', True, True),
        (' "7" ', True, True),
        ('W/"7"', True, False),
        ('"6", "7"', True, True),
        ('"6" ,W/"7"', True, False),
        ('W/"6","7"', True, True),
        ("*", True, True),
        ('"6"', False, False),
        ('""', False, False),
        ('"a,b", "c"', False, False),
    ],
)
def test_an_etag_is_compared_weakly_to_spare_an_answer_and_strongly_to_allow_a_change(
    header: str, has: bool, names: bool
) -> None:
    etags = read_etags(header, "If-Match")
    assert etags is not None
    assert (etags.has('"7"'), etags.names('"7"')) == (has, names)


def test_a_comma_may_stand_within_an_etag() -> None:
    etags = read_etags('"a,b", "c"', "If-Match")
    assert etags is not None
    assert etags.names('"a,b"')


def test_without_the_header_there_is_no_condition() -> None:
    assert read_etags(None, "If-Match") is None


@pytest.mark.parametrize(
    "header", ["", "7", "'7'", '"7', '"7" "8"', ",", "*, *", '*, "7"', 'w/"7"', '"' + "x" * 1000 + '"']
)
def test_what_is_no_list_of_etags_is_refused_by_its_headers_name(header: str) -> None:
    with pytest.raises(Malformed, match="If-Match"):
        read_etags(header, "If-Match")
