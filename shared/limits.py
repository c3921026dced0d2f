"""What DynamoDB and SQS take, checked before anything is written.

Sources: DynamoDB developer guide, "Service, account, and table quotas" and "Item sizes and formats"; SQS developer guide,
"Amazon SQS message quotas" and SendMessage (characters of XML 1.0 only).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from decimal import Context, Decimal

from shared.errors import Refused

OWN_BYTES = 256  # of an item: what the product adds to it (version, ttl)
ITEM_BYTES = 400 * 1024 - OWN_BYTES
ITEM_ATTRIBUTES = 100  # at the top level: an update names each, and DynamoDB takes expressions of 4 KB
TRANSACTION_ITEMS = 100
TRANSACTION_BYTES = 4 * 1024 * 1024
KEY_BYTES = 1024  # of a sort key; a partition key may have 2048
NUMBER_DIGITS = 38
NUMBER_BYTES = 21  # at the most
SURELY_KEPT = 10**NUMBER_DIGITS
NUMBER_EXPONENTS = range(-130, 126)
NESTING = 32

MESSAGE_BYTES = 1024 * 1024  # body and attributes of one message, and of one batch in all
PAYLOAD_BYTES = 256 * 1024  # it is kept in the job record, beside the result
MESSAGE_ATTRIBUTES = 10
BATCH_ENTRIES = 10
LONGEST_DELAY = timedelta(minutes=15)  # of one message on a queue
LONGEST_HIDDEN = timedelta(hours=12)  # counted from a message's receipt
# Kept free in every message that is sent, so that its dead letter can carry its reason.
DEAD_LETTER_BYTES = 4 * 1024
DEAD_LETTER_ATTRIBUTES = 1
_REFUSED_BY_SQS = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_GROUP = re.compile(r"[!-~]{1,128}")
_EXACT = Context(prec=1_000_000, Emax=999_999, Emin=-999_999)

Scalar = str | bytes | int | Decimal
Value = Scalar | bool | None | Sequence["Value"] | Mapping[str, "Value"] | frozenset[str] | frozenset[Scalar]


def check_number(number: int | Decimal) -> None:
    """Refuse what DynamoDB cannot hold exactly: more than 38 digits, exponents beyond -130..125, NaN, infinities.

    Raises:
        Refused: with the number's shape.
    """
    if type(number) is int and -SURELY_KEPT < number < SURELY_KEPT:
        return
    exact = Decimal(number)
    if not exact.is_finite():
        message = f"{number} is no number that DynamoDB can hold."
        raise Refused(message)
    if exact and abs(exact.adjusted()) > NUMBER_DIGITS * 10:
        message = f"A number of magnitude 1e{exact.adjusted()}: send it as a string."
        raise Refused(message)
    digits = normal(exact).as_tuple().digits if exact else (0,)
    if len(digits) > NUMBER_DIGITS:
        message = f"A number of {len(digits)} digits: DynamoDB keeps {NUMBER_DIGITS}. Send it as a string."
        raise Refused(message)
    if exact and exact.adjusted() not in NUMBER_EXPONENTS:
        message = (
            f"A number of magnitude 1e{exact.adjusted()}: DynamoDB keeps 1e{NUMBER_EXPONENTS[0]} to"
            f" 1e{NUMBER_EXPONENTS[-1]}. Send it as a string."
        )
        raise Refused(message)


def normal(number: int | Decimal) -> Decimal:
    """The number in its shortest exact form, as DynamoDB keeps it."""
    return Decimal(number).normalize(_EXACT)


def check_text(text: str, where: str) -> None:
    """Refuse a lone half of a surrogate pair: it is no character and cannot be encoded.

    Raises:
        Refused: naming where it stands.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        message = f"{where} holds half a surrogate pair at position {error.start}: send whole characters."
        raise Refused(message) from error


def check_value(value: object, where: str, depth: int = 0) -> int:  # noqa: C901, PLR0912 - one case a type
    """Refuse what DynamoDB would refuse, and give the value's size in bytes.

    Raises:
        Refused: naming where it stands and what to use instead.
    """
    if depth > NESTING:
        message = f"{where} is nested deeper than DynamoDB's {NESTING} levels: flatten it."
        raise Refused(message)
    if type(value) is str and value.isascii():  # most are: both of these are taken as they are
        return len(value)
    if type(value) is int and -SURELY_KEPT < value < SURELY_KEPT:
        return NUMBER_BYTES
    match value:
        case bool() | None:
            return 1
        case float():
            message = f"{where} is a float ({value!r}): use Decimal, int or str."
            raise Refused(message)
        case int() | Decimal():
            try:
                check_number(value)
            except Refused as error:
                message = f"{where}: {error}"
                raise Refused(message) from error
            return NUMBER_BYTES
        case str():
            check_text(value, where)
            return len(value.encode())
        case bytes():
            return len(value)
        case Mapping():
            size = 3
            for name, inner in value.items():
                if not isinstance(name, str):
                    message = f"{where} has a key that is no string ({name!r})."
                    raise Refused(message)
                if not name.isascii():
                    check_text(name, f"{where}: the key {name!r}")
                size += 1 + len(name.encode()) + check_value(inner, f"{where}.{name}", depth + 1)
            return size
        case frozenset():
            kinds = {int if isinstance(element, Decimal) else type(element) for element in value}
            if len(kinds) != 1 or not kinds <= {str, int, bytes}:
                message = f"{where} is a set that is empty or holds more than strings, numbers or bytes: use a list."
                raise Refused(message)
            return 3 + sum(check_value(element, where, depth + 1) for element in value)
        case list() | tuple():
            return 3 + sum(1 + check_value(inner, f"{where}[{place}]", depth + 1) for place, inner in enumerate(value))
        case _:
            message = f"{where} is a {type(value).__name__}: use str, int, Decimal, bool, bytes, None, list or dict."
            raise Refused(message)


def check_item(item: Mapping[str, object], keys: Sequence[str], where: str) -> int:
    """Refuse an item that DynamoDB would refuse, and give its size in bytes.

    Raises:
        Refused: naming the attribute, or the size and the limit.
    """
    for key in keys:
        value = item.get(key)
        if not isinstance(value, str) or not value:
            message = f"{where}: the key attribute {key!r} must be a string that is not empty, not {value!r}."
            raise Refused(message)
        if len(value.encode(errors="replace")) > KEY_BYTES:
            message = f"{where}: the key attribute {key!r} is over {KEY_BYTES} bytes: store a hash of it."
            raise Refused(message)
    if len(item) > ITEM_ATTRIBUTES:
        message = f"{where} has {len(item)} attributes, {ITEM_ATTRIBUTES} are taken: put some into a map."
        raise Refused(message)
    size = check_value(item, where)
    if size > ITEM_BYTES:
        message = f"{where} has {size} bytes, DynamoDB takes {ITEM_BYTES}: store the large part elsewhere."
        raise Refused(message)
    return size


def check_message(body: str, attributes: Mapping[str, str], reserve: int = DEAD_LETTER_BYTES) -> int:
    """Refuse a message that SQS would refuse, now or when it is dead-lettered, and give its size in bytes.

    Size counts the UTF-8 bytes of the body and of each attribute's name, type and value.

    Raises:
        Refused: naming the character, or the size and the limit.
    """
    if not body:
        message = "The body is empty: SQS takes no empty message."
        raise Refused(message)
    if len(attributes) > MESSAGE_ATTRIBUTES - DEAD_LETTER_ATTRIBUTES:
        message = (
            f"{len(attributes)} attributes: SQS takes {MESSAGE_ATTRIBUTES}, one of them is kept for the dead letter's"
            " reason. Move some into the payload."
        )
        raise Refused(message)
    for where, text in (("The body", body), *attributes.items()):
        if (found := _REFUSED_BY_SQS.search(text)) is not None:
            message = f"{where} holds U+{ord(found.group()):04X}, which SQS refuses: escape it (JSON's \\u form)."
            raise Refused(message)
    size = message_size(body, attributes)
    if size + reserve > MESSAGE_BYTES:
        message = (
            f"The message has {size} bytes with its attributes; with {reserve} kept for the dead letter's reason that"
            f" is over SQS's {MESSAGE_BYTES}: send a reference to the large part."
        )
        raise Refused(message)
    return size


def check_group(group: str) -> None:
    """Refuse a MessageGroupId that SQS would refuse.

    Raises:
        Refused: with the rule.
    """
    if not _GROUP.fullmatch(group):
        message = f"A group of {len(group)} characters: SQS takes 1 to 128 ASCII letters, digits and punctuation marks."
        raise Refused(message)


def message_size(body: str, attributes: Mapping[str, str]) -> int:
    """Bytes that SQS counts for a message with string attributes."""
    kind = len("String")
    return len(body.encode()) + sum(
        len(name.encode()) + kind + len(value.encode()) for name, value in attributes.items()
    )
