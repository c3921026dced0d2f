"""Tables and what a job may do with them; infra turns the same values into tables and permissions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from shared.errors import DeclarationError

NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


class Right(StrEnum):
    """What a job may do with a table."""

    READ = "read"
    READ_WRITE = "read-write"


class Way(StrEnum):
    """How a function that shows items reads those of a table."""

    ITEM = "item"
    MANY = "many"  # by their keys, several at once
    ALL = "all"  # of a partition


@dataclass(frozen=True, slots=True)
class Table:
    """A DynamoDB table of business items, by its logical name (`orders`) and key attributes, all strings.

    The product owns three attributes of every item: `version` (N), and on deleted items `deleted` (BOOL) and `ttl` (N).
    """

    name: str
    key: str
    sort_key: str | None = None

    def __post_init__(self) -> None:
        """Refuse names that infra could not use.

        Raises:
            DeclarationError: with the repair.
        """
        if not NAME.fullmatch(self.name):
            message = f"Table({self.name!r}): use lower case words joined by '-', like 'order-lines'."
            raise DeclarationError(message)
        for attribute in (self.key, self.sort_key):
            if attribute in {"version", "deleted", "ttl", ""}:
                message = f"Table({self.name!r}): {attribute!r} cannot be a key attribute, the product owns that name."
                raise DeclarationError(message)

    @property
    def key_names(self) -> tuple[str, ...]:
        """The names of the key attributes, in order."""
        return (self.key,) if self.sort_key is None else (self.key, self.sort_key)

    @property
    def read(self) -> Access:
        """The right to read items of this table."""
        return Access(self, Right.READ)

    @property
    def read_write(self) -> Access:
        """The right to read, create, update and delete items of this table."""
        return Access(self, Right.READ_WRITE)


@dataclass(frozen=True, slots=True)
class Access:
    """What a job declares in `uses` about a table."""

    table: Table
    right: Right
