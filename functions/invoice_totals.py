"""The totals of an invoice's lines, by tax rate. Knows no job: numbers in, text with every digit out.

Sums are exact. The tax of a rate is rounded once, half up, to the currency's smallest unit.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal, Inexact, InvalidOperation, Overflow
from functools import reduce
from typing import TYPE_CHECKING

from shared.errors import DeadLetter, Refused
from shared.limits import check_number

if TYPE_CHECKING:
    from collections.abc import Iterable

    from shared.limits import Value

# Places of a currency's smallest unit (ISO 4217).
PLACES = {"EUR": 2, "USD": 2, "GBP": 2, "CHF": 2, "JPY": 0}
HIGHEST_RATE = Decimal(1)
_NUMBER = re.compile(r"-?[0-9]{1,38}(\.[0-9]{1,38})?")
_EXACT = Context(prec=300, traps=[Inexact, InvalidOperation, Overflow])  # what would not be exact raises
_ROUNDED = Context(prec=300, rounding=ROUND_HALF_UP, traps=[InvalidOperation, Overflow])


def totals_of(invoice: Mapping[str, Value]) -> dict[str, Value]:
    """The totals of the invoice's lines, as attributes: `net`, `tax`, `gross`, and `taxes`, the lowest rate first.

    Raises:
        DeadLetter: unknown-currency; invalid-lines, with the place of the line and no value of it; not-representable,
            if a total is no number that every store can hold.
    """
    places = PLACES.get(str(invoice.get("currency")))
    if places is None:
        reason = "unknown-currency"
        raise DeadLetter(reason, f"the currencies are {', '.join(sorted(PLACES))}")
    nets: defaultdict[Decimal, Decimal] = defaultdict(Decimal)
    try:
        for place, line in enumerate(_lines(invoice)):
            price, quantity, rate = (_number(line, name, place) for name in ("unit_price", "quantity", "tax_rate"))
            if not 0 <= rate <= HIGHEST_RATE:
                raise _invalid(f"line {place}: tax_rate is a share from 0 to {HIGHEST_RATE}")
            nets[rate] = _EXACT.add(nets[rate], _EXACT.multiply(price, quantity))
        unit = Decimal(1).scaleb(-places)
        taxes = [(rate, net, _ROUNDED.quantize(_EXACT.multiply(net, rate), unit)) for rate, net in sorted(nets.items())]
        net, tax = _sum(net for _, net, _ in taxes), _sum(tax for *_, tax in taxes)
        by_rate = [{"rate": _text(rate), "net": _text(net), "tax": _text(tax)} for rate, net, tax in taxes]
        return {"net": _text(net), "tax": _text(tax), "gross": _text(_EXACT.add(net, tax)), "taxes": by_rate}
    except (ArithmeticError, Refused) as error:
        reason = "not-representable"
        raise DeadLetter(reason, f"a total has no exact form: {type(error).__name__}") from error


def _lines(invoice: Mapping[str, Value]) -> Sequence[Value]:
    lines = invoice.get("lines")
    if not isinstance(lines, Sequence) or isinstance(lines, str | bytes):
        raise _invalid("the invoice has no list of lines")
    return lines


def _number(line: Value, name: str, place: int) -> Decimal:
    """A line's number, whether it is kept as one or as text."""
    value = line.get(name) if isinstance(line, Mapping) else None
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        return Decimal(value)
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return Decimal(value)
    raise _invalid(f"line {place}: {name} is no number")


def _invalid(detail: str) -> DeadLetter:
    return DeadLetter("invalid-lines", detail)


def _sum(numbers: Iterable[Decimal]) -> Decimal:
    return reduce(_EXACT.add, numbers, Decimal(0))


def _text(number: Decimal) -> str:
    """The number in full.

    Raises:
        Refused: it is none that every store can hold.
    """
    check_number(number)
    return f"{_EXACT.add(number, Decimal(0)):f}"  # no zero has a sign
