"""What a cache keeps and what its store promises: entries that hang on tags, refill leases, and floors after invalidations.

A miss hands the refill lease to one caller; an entry is stored only with that lease's token; an invalidation drops
entries and tokens at once. So a late refill never brings an old value back. Knows no technology and no policy.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

from shared.errors import Refused

if TYPE_CHECKING:
    from shared.caching.lives import Lives
    from shared.tag import Version

# A floor outlives its invalidation by this: twice the longest load that is expected of a source.
# A refill token outlives its lease by as much, if nobody else has taken the lease: its load may still be stored.
AFTERLIFE = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Loaded:
    """What the source gave, and what is kept of it.

    Attributes:
        value: text; None is a remembered absence.
        version: how new it is. All versions under one tag are of one line (one aggregate), since a tag has one floor.
    """

    value: str | None
    version: Version | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be kept.

        Raises:
            Refused: the value is no Unicode text: it holds half of a surrogate pair.
        """
        try:
            _ = self.value is None or self.value.isascii() or self.value.encode()
        except UnicodeEncodeError:
            message = "A cached value is text that UTF-8 can write; this one holds half of a surrogate pair."
            raise Refused(message) from None


@dataclass(frozen=True, slots=True)
class Hit:
    """An entry to serve. `refreshing`: it is past its soft time, and another caller has the refill lease."""

    entry: Loaded
    refreshing: bool = False


@dataclass(frozen=True, slots=True)
class Stale:
    """An entry past its soft time; this caller has the refill lease. It may be served for `left`."""

    entry: Loaded
    left: timedelta


@dataclass(frozen=True, slots=True)
class Miss:
    """Nothing is kept; this caller has the refill lease."""


@dataclass(frozen=True, slots=True)
class Busy:
    """Nothing is kept; another caller has the refill lease."""


Found = Hit | Stale | Miss | Busy


class CacheStore(Protocol):
    """Where entries are kept: `tag` groups what one invalidation drops, `name` tells the entries of a tag apart.

    The store's own clock decides what has passed. Every call is one exchange, raises CacheUnavailable if there was no
    answer, and may then have been done.
    """

    def fetch(self, tag: str, name: str, token: str, lease: timedelta, at_least: Version | None) -> Found:
        """Give the entry, or the refill lease under `token`, or tell who is before.

        A token that finds itself there had its reply lost: it has the lease. With `at_least`, an entry of a lower
        version or of none is missing.
        """
        ...

    def store(self, tag: str, name: str, token: str, entry: Loaded, lives: Lives) -> bool:
        """Keep what was loaded, and end the lease; tell whether it is kept. Told once more, it keeps what it has kept.

        Refused: the token was revoked or replaced; the version is below the tag's floor or that of the entry kept.
        """
        ...

    def prolong(self, tag: str, name: str, token: str, lease: timedelta) -> bool:
        """Renew the refill lease; tell whether it is still this token's."""
        ...

    def abandon(self, tag: str, name: str, token: str) -> None:
        """Give the refill lease back, so that the next caller loads at once."""
        ...

    def put(self, tag: str, name: str, entry: Loaded, lives: Lives) -> bool:
        """Move a versioned entry forward without a token; tell whether it is kept.

        A put creates nothing: where no version is kept nobody can tell old from new, and it could bring back what was
        invalidated long ago. Then the name is forgotten and its refill token revoked, so that the next caller loads.
        A lower version than the one that is kept changes nothing.

        Raises:
            Refused: the entry has no version.
        """
        ...

    def discard(self, tag: str, name: str) -> None:
        """Forget the entry and revoke its refill token."""
        ...
