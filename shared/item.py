"""Business items: as the store holds them, as a handler sees them, and the conditional writes that change them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from shared.errors import Refused
from shared.limits import Value

if TYPE_CHECKING:
    from datetime import datetime

    from shared.table import Table

Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Stored:
    """An item as the store holds it. A tombstone (deleted) has a version and no more."""

    attributes: Mapping[str, Value]
    version: int
    deleted: bool = False


class ItemStore(Protocol):
    """Where business items are read, consistently. They are written by the job record's commit."""

    def read(self, table: Table, key: Key) -> Stored | None:
        """Read an item or its tombstone.

        Raises:
            Unavailable: no answer.
        """
        ...


class ItemSource(ItemStore, Protocol):
    """Where items are read to be shown, several at once; consistently each, but not as of one moment."""

    def read_many(self, table: Table, keys: Sequence[Key]) -> Mapping[Key, Stored]:
        """Read items by their keys; what is absent or deleted is left out.

        Raises:
            Unavailable: no answer, or not all of it.
        """
        ...

    def read_all(self, table: Table, partition: str, most: int) -> Sequence[Stored]:
        """Read the items of a partition in the order of their sort keys, `most` of them; what is deleted is left out.

        Raises:
            Unavailable: no answer, or not all of it.
        """
        ...


@dataclass(frozen=True, slots=True)
class Create:
    """Write an item that must not exist."""

    table: Table
    key: Key
    attributes: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Replace:
    """Change an item that must still have the version seen; `changed` names the attributes that are written.

    Attributes that are not named stay as they are in the store, also those that this product does not understand.
    """

    table: Table
    key: Key
    attributes: Mapping[str, Value]
    seen: int
    changed: frozenset[str]


@dataclass(frozen=True, slots=True)
class Delete:
    """Leave a tombstone of an item that must still have the version seen."""

    table: Table
    key: Key
    seen: int
    kept_until: datetime


@dataclass(frozen=True, slots=True)
class Unchanged:
    """Demand that an item still has the version seen (None: there was none)."""

    table: Table
    key: Key
    seen: int | None


Write = Create | Replace | Delete | Unchanged


class Item(Mapping[str, Value]):
    """An item as read, with what has been staged on it since."""

    __slots__ = ("_attributes", "key", "table", "version")

    def __init__(self, table: Table, key: Key, attributes: Mapping[str, Value], version: int) -> None:
        """Hold an item's attributes and the version they were read at."""
        self.table = table
        self.key = key
        self.version = version
        self._attributes = dict(attributes)

    def __getitem__(self, name: str) -> Value:
        """Give an attribute."""
        return self._attributes[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the attributes."""
        return iter(self._attributes)

    def __len__(self) -> int:
        """Count the attributes."""
        return len(self._attributes)

    def text(self, name: str) -> str:
        """Give a string attribute.

        Raises:
            Refused: it is missing or no string.
        """
        value = self._attributes.get(name)
        if not isinstance(value, str):
            message = f"{self.table.name} {'/'.join(self.key)}: {name!r} is no string but {type(value).__name__}."
            raise Refused(message)
        return value
