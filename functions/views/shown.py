"""What clients see of business items, and how the cache keeps it: an ETag and a JSON body, as one text.

Workers that refresh the cache and the front door that reads through it share this, so that they cannot disagree. It knows no
business and no HTTP.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from shared.caching.store import Loaded
from shared.strict_json import json_text
from shared.tag import Version

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from shared.limits import Value

ABSENT = Loaded(None)


@dataclass(frozen=True, slots=True)
class Shown:
    """A representation: `etag` as HTTP writes it, quotes included; `body` is JSON."""

    etag: str
    body: str

    @property
    def text(self) -> str:
        """As the cache keeps it; `read` gives it back. No ETag holds a line break."""
        return f"{self.etag}\n{self.body}"

    @classmethod
    def read(cls, text: str) -> Shown:
        """What was kept as this text."""
        etag, _, body = text.partition("\n")
        return cls(etag, body)


def etag_of(version: int) -> str:
    """The ETag of an item's version; strong, since each change of an item is a version of its own."""
    return f'"{version}"'


def versioned(version: int, fields: Mapping[str, object]) -> Loaded:
    """An item's representation, for the cache: newer by its version."""
    return Loaded(Shown(etag_of(version), json_text(fields)).text, Version(version))


def chosen(item: Mapping[str, Value], names: Iterable[str]) -> dict[str, str]:
    """Those fields of an item that are text or numbers, as text with every digit; no others ever leave the house."""
    found: dict[str, str] = {}
    for name in names:
        match item.get(name):
            case str() as text:
                found[name] = text
            case bool():
                continue
            case int() | Decimal() as number:
                found[name] = f"{number:f}" if isinstance(number, Decimal) else str(number)
            case _:
                continue
    return found
