"""JSON read strictly and written canonically: no field twice, no NaN, every number's digits, text that SQS takes."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NoReturn

from shared.clock import random_token
from shared.errors import Malformed, Refused
from shared.limits import NUMBER_DIGITS, check_number, check_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

LONGEST_NUMBER = 200  # characters; over 38 digits is refused anyway, zeros aside
_NOT_IN_XML = re.compile("[\ufffe\uffff]")  # control characters and lone surrogates are escaped or refused before
# Python's JSON writer cannot be told a number's digits, so they travel as a string that nobody can guess.
_MARK = random_token()
_MARKED = re.compile(f'"{_MARK}([^"]+){_MARK}"')


def read_json(text: str) -> tuple[object, str]:
    """Read a JSON text; give the value, and the text in canonical form with every number's digits.

    In the value, numbers with a fraction are marked strings; only the text has their digits.

    Raises:
        Malformed: malformed-json.
    """
    try:
        parsed = _STRICT.decode(text)
        canonical = written(parsed)
        check_text(canonical, "the body")
    except Malformed:
        raise
    except RecursionError as error:
        raise Malformed("malformed-json", "nested too deeply") from error
    except (ValueError, ArithmeticError, MemoryError, Refused) as error:
        raise Malformed("malformed-json", _where(error)) from error
    return parsed, canonical


def read_exactly(payload: str) -> Any:  # noqa: ANN401 - any JSON
    """The value of a canonical text, with each number that has a fraction as a Decimal of its digits."""
    return json.loads(payload, parse_float=Decimal)


def written(value: object) -> str:
    """The canonical text of a value that `read_json` or `read_exactly` gave, or of a part of it."""
    return _digits_back(_text(value, _MARKING))


def indented(text: str) -> str:
    """A canonical text as people edit it, with every number's digits."""
    return _digits_back(json.dumps(read_exactly(text), ensure_ascii=False, indent=2, default=_marked))


def json_text(value: object) -> str:
    """Canonical JSON in characters that SQS takes: sorted, without blanks, what XML 1.0 lacks as escapes."""
    return _text(value, _PLAIN)


def _text(value: object, encoder: json.JSONEncoder) -> str:
    text = encoder.encode(value)
    if text.isascii():
        return text
    return _NOT_IN_XML.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def fractions_as_text(payload: str) -> str:
    """The payload with fractional numbers as strings: pydantic reads JSON numbers as doubles, strings exactly."""
    return json.dumps(json.loads(payload, parse_float=str), ensure_ascii=False)


def _object(pairs: list[tuple[str, object]]) -> Mapping[str, object]:
    seen = dict(pairs)
    if len(seen) != len(pairs):
        raise Malformed("malformed-json", "an object names a field twice")
    return seen


def _no_constant(name: str) -> NoReturn:
    raise Malformed("malformed-json", f"{name} is no JSON number")


def _integer(text: str) -> int:
    if len(text) > LONGEST_NUMBER:
        raise Malformed("malformed-json", f"a number of {len(text)} digits")
    number = int(text)
    check_number(number)
    return number


def _number(text: str) -> int | str:
    """A JSON number with a point or an exponent: an integer if its value is one, else kept digit by digit."""
    if len(text) > LONGEST_NUMBER:
        raise Malformed("malformed-json", f"a number of {len(text)} characters")
    exact = Decimal(text)
    check_number(exact)
    if exact.is_zero() and exact.is_signed():
        raise Malformed("malformed-json", "-0.0 has no exact form: send 0")
    if exact == exact.to_integral_value() and exact.adjusted() < NUMBER_DIGITS:
        return int(exact)
    return f"{_MARK}{text}{_MARK}"


def _marked(value: object) -> str:
    """A Decimal as a marked string.

    Raises:
        TypeError: it is none, and JSON has no form for it.
    """
    if not isinstance(value, Decimal):
        message = f"{type(value).__name__} has no form in JSON"
        raise TypeError(message)
    return f"{_MARK}{value}{_MARK}"


def _digits_back(text: str) -> str:
    if _MARK not in text:
        return text
    return _MARKED.sub(r"\1", text)


def _where(error: Exception) -> str:
    """Where JSON ended, without quoting it."""
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at position {error.pos}"
    return str(error) if isinstance(error, Refused) else type(error).__name__


# Made once: they are asked several times for each message.
_STRICT = json.JSONDecoder(
    object_pairs_hook=_object, parse_constant=_no_constant, parse_int=_integer, parse_float=_number
)


def _encoder(default: Callable[[object], str] | None) -> json.JSONEncoder:
    return json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False, default=default)


_PLAIN, _MARKING = _encoder(None), _encoder(_marked)
