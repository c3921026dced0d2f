"""Read-through cache whose entries hang on tags: a tag is one key in Redis, so that dropping it drops all at once.

A miss hands out a refill token; an entry is stored only with its token; invalidation drops the entries and the tokens.
So a late refill never brings an old value back. The cache decides nothing and may be lost at any moment.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

from shared.errors import CacheUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    from shared.clock import Tokens


@dataclass(frozen=True, slots=True)
class Hit:
    """What was kept, as JSON text."""

    value: str


@dataclass(frozen=True, slots=True)
class Miss:
    """Nothing was kept; whoever stores must show this token."""

    refill: str


class CacheStore(Protocol):
    """Where entries are kept. `tag` groups what one invalidation drops, `name` tells entries of a tag apart."""

    def fetch(self, tag: str, name: str, refill: str, ttl: timedelta) -> Hit | Miss:
        """Give the entry, or leave `refill` as the token of the one who may store it.

        Raises:
            CacheUnavailable: no answer.
        """
        ...

    def store(self, tag: str, name: str, refill: str, value: str, ttl: timedelta) -> bool:
        """Store the entry if its token was not revoked; tell whether it was stored.

        Raises:
            CacheUnavailable: no answer.
        """
        ...


@dataclass(frozen=True, slots=True)
class Cache:
    """Reads through to the source. With Redis gone every read goes to the source."""

    entries: CacheStore
    tokens: Tokens
    ttl: timedelta = timedelta(minutes=10)

    def read(self, tag: str, name: str, load: Callable[[], str]) -> str:
        """Give the entry's JSON text, from the cache or else from `load`."""
        try:
            found = self.entries.fetch(tag, name, self.tokens(), self.ttl)
        except CacheUnavailable:
            return load()
        if isinstance(found, Hit):
            return found.value
        value = load()
        try:
            self.entries.store(tag, name, found.refill, value, self.ttl)
        except CacheUnavailable:
            return value
        return value
