"""Totals of an invoice: exact, by rate, rounded once; what has no exact form is refused without a value of it."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.invoice_totals import totals_of
from shared.errors import DeadLetter


def line(price: Any, quantity: Any = 1, rate: Any = "0.19") -> dict[str, Any]:
    return {"description": "a thing", "unit_price": price, "quantity": quantity, "tax_rate": rate}


def totals(*lines: Any, currency: str = "EUR") -> Any:
    return totals_of({"currency": currency, "lines": list(lines)})


def test_r4_1_totals_are_exact_and_told_by_rate() -> None:
    assert totals(line("10.10", 3), line("0.10"), line("5.00", 2, "0.07"), line("1", 1, 0)) == {
        "net": "41.40",
        "tax": "6.48",
        "gross": "47.88",
        "taxes": [
            {"rate": "0", "net": "1", "tax": "0.00"},
            {"rate": "0.07", "net": "10.00", "tax": "0.70"},
            {"rate": "0.19", "net": "30.40", "tax": "5.78"},
        ],
    }


def test_tenths_add_up_as_on_paper() -> None:
    assert totals(*[line("0.1")] * 10, currency="EUR")["net"] == "1.0"


def test_the_tax_of_a_rate_is_rounded_once_and_half_up() -> None:
    half = line("0.50", 1, "0.05")  # 0.025 each
    assert totals(half)["tax"] == "0.03"
    assert totals(half, half)["tax"] == "0.05"  # and not 0.06
    assert totals(line("-0.50", 1, "0.05"))["tax"] == "-0.03"


def test_no_total_is_less_than_nothing_by_rounding() -> None:
    assert totals(line("-0.01"))["tax"] == "0.00"


def test_one_rate_written_in_two_ways_is_one_rate() -> None:
    assert [each["net"] for each in totals(line("1", 1, "0.19"), line("2", 1, "0.190"))["taxes"]] == ["3"]


def test_a_currency_has_its_own_smallest_unit() -> None:
    assert totals(line("999", 1, "0.10"), currency="JPY")["tax"] == "100"


def test_an_invoice_without_lines_comes_to_nothing() -> None:
    assert totals() == {"net": "0", "tax": "0", "gross": "0", "taxes": []}


def test_numbers_are_taken_as_the_table_keeps_them() -> None:
    assert totals(line(Decimal("30.40"), 1, Decimal("0.19")))["gross"] == "36.18"


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([line("much")], "invalid-lines"),
        ([line("1"), line("1", None)], "invalid-lines"),
        ([line("1", True)], "invalid-lines"),
        ([line("NaN")], "invalid-lines"),
        ([line("1e3")], "invalid-lines"),
        ([line("1", 1, "1.01")], "invalid-lines"),
        ([line("1", 1, "-0.01")], "invalid-lines"),
        (["a line"], "invalid-lines"),
        ("lines", "invalid-lines"),
        (None, "invalid-lines"),
        ([line("9" * 38, "9" * 38)], "not-representable"),
        ([line("9" * 38), line("0.01")], "not-representable"),
        ([line(Decimal("1e125"), Decimal("1e125"))], "not-representable"),
        ([line(Decimal("1e125")), line(Decimal("1e-130"), Decimal("1e-130"))], "not-representable"),
    ],
)
def test_r4_3_what_does_not_add_up_to_a_number_is_a_dead_letter_at_once(lines: Any, reason: str) -> None:
    with pytest.raises(DeadLetter) as caught:
        totals_of({"currency": "EUR", "lines": lines})
    assert caught.value.reason == reason


def test_a_refusal_names_the_line_and_no_value() -> None:
    with pytest.raises(DeadLetter) as caught:
        totals(line("1"), line("canary"))
    assert "line 1" in str(caught.value)
    assert "canary" not in str(caught.value)


def test_a_currency_that_nobody_knows_is_a_dead_letter() -> None:
    with pytest.raises(DeadLetter) as caught:
        totals(line("1"), currency="XXX")
    assert caught.value.reason == "unknown-currency"


Cents = st.integers(-(10**12), 10**12).map(lambda cents: f"{Decimal(cents) / 100:f}")


@given(st.lists(st.tuples(Cents, st.integers(-1000, 1000), st.sampled_from(["0", "0.07", "0.19"])), max_size=20))
def test_whatever_the_order_of_the_lines_the_totals_are_the_same_and_add_up(lines: list[Any]) -> None:
    found = totals(*[line(*each) for each in lines])
    numbers = [Decimal(found[name]) for name in ("net", "tax", "gross")]
    assert numbers[0] + numbers[1] == numbers[2]
    assert numbers[0] == sum((Decimal(price) * quantity for price, quantity, _ in lines), Decimal(0))
    again = totals(*[line(*each) for each in reversed(lines)])
    assert [Decimal(again[name]) for name in ("net", "tax", "gross")] == numbers
