"""What DynamoDB and SQS would refuse is refused before anything is written."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from shared.errors import Refused
from shared.limits import (
    DEAD_LETTER_BYTES,
    ITEM_BYTES,
    MESSAGE_BYTES,
    check_item,
    check_message,
    check_number,
    message_size,
)


@pytest.mark.parametrize("number", [Decimal("30.40"), Decimal("1e-130"), 10**37, 10**38 - 1, Decimal("9.9e125"), 0, -5])
def test_pay_09_numbers_of_38_digits_in_range_pass(number: Any) -> None:
    check_number(number)


@pytest.mark.parametrize(
    "number",
    [10**38 + 1, Decimal("1e126"), Decimal("1e-131"), Decimal("NaN"), Decimal("Infinity"), Decimal("1." + "1" * 38)],
)
def test_pay_09_numbers_that_dynamodb_would_cut_or_refuse_are_refused(number: Any) -> None:
    with pytest.raises(Refused):
        check_number(number)


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (0.1, "use Decimal"),
        (float("nan"), "use Decimal"),
        ({"a": [{"b": 1.5}]}, r"item\.v\.a\[0\]\.b is a float .*use Decimal"),
        ("\ud83d", "half a surrogate pair"),
        ({"\ud83d": 1}, "half a surrogate pair"),
        ({1: 2}, "key that is no string"),
        (object(), "use str, int"),
        (frozenset(), "empty"),
        (frozenset({1, "a"}), "more than strings"),
        (range(3), "use str, int"),
        (10**40 + 1, "38"),
    ],
    ids=repr,
)
def test_values_that_dynamodb_refuses_are_named_with_their_place(value: Any, says: str) -> None:
    with pytest.raises(Refused, match=says):
        check_item({"id": "a", "v": value}, ["id"], "item")


@pytest.mark.parametrize("value", [frozenset({1, Decimal("2.5")}), frozenset({"a"}), frozenset({b"a"}), (1, 2), [None]])
def test_values_that_dynamodb_takes_pass(value: Any) -> None:
    check_item({"id": "a", "v": value}, ["id"], "item")


def test_an_item_has_a_hundred_attributes_at_the_top() -> None:
    check_item({"id": "a", **{f"a{number}": 1 for number in range(99)}}, ["id"], "item")
    with pytest.raises(Refused, match="into a map"):
        check_item({"id": "a", **{f"a{number}": 1 for number in range(100)}}, ["id"], "item")


def test_nesting_ends_where_dynamodb_ends() -> None:
    def nested(depth: int) -> Any:
        value: Any = 1
        for _ in range(depth):
            value = [value]
        return value

    check_item({"id": "a", "v": nested(30)}, ["id"], "item")
    with pytest.raises(Refused, match="flatten"):
        check_item({"id": "a", "v": nested(40)}, ["id"], "item")


@pytest.mark.parametrize("key", ["", None, 5, "x" * 1025])
def test_a_key_must_be_a_short_string(key: Any) -> None:
    with pytest.raises(Refused, match="key attribute"):
        check_item({"id": key}, ["id"], "item")


def test_an_item_at_the_limit_passes_and_one_byte_more_does_not() -> None:
    overhead = check_item({"id": "a", "v": ""}, ["id"], "item")
    check_item({"id": "a", "v": "x" * (ITEM_BYTES - overhead)}, ["id"], "item")
    with pytest.raises(Refused, match=str(ITEM_BYTES)):
        check_item({"id": "a", "v": "x" * (ITEM_BYTES - overhead + 1)}, ["id"], "item")


def test_pay_03_size_is_bytes_of_body_and_attributes() -> None:
    assert message_size("\u4e2d", {"trace": "abc"}) == 3 + len("trace") + len("String") + 3
    with pytest.raises(Refused, match="1200000 bytes"):
        check_message("\u4e2d" * 400_000, {})


def test_pay_03_an_attribute_that_no_longer_fits_is_refused_before_sending() -> None:
    text = "x" * (MESSAGE_BYTES - DEAD_LETTER_BYTES - 10)
    assert check_message(text, {}) == len(text)
    with pytest.raises(Refused, match="kept for the dead letter"):
        check_message(text, {"correlation": "y" * 60})


def test_one_attribute_is_kept_for_the_dead_letter() -> None:
    check_message("x", {str(number): "v" for number in range(9)})
    with pytest.raises(Refused, match="10 attributes"):
        check_message("x", {str(number): "v" for number in range(10)})


@pytest.mark.parametrize("character", ["\x00", "\x07", "\x0b", "\x1f", "\ufffe", "\uffff", "\ud83d"])
def test_pay_01_characters_that_sqs_refuses_are_named(character: str) -> None:
    with pytest.raises(Refused, match=f"U\\+{ord(character):04X}"):
        check_message(f"a{character}b", {})
    with pytest.raises(Refused, match="note holds"):
        check_message("a", {"note": character})


@pytest.mark.parametrize("text", ["\t\n\r", "\x20\x7f", "\ud7ff\ue000\ufffd", "\U00010000\U0010ffff"])
def test_pay_01_characters_that_sqs_takes_pass(text: str) -> None:
    check_message(text, {})


def test_an_empty_body_is_refused() -> None:
    with pytest.raises(Refused, match="empty"):
        check_message("", {})
