"""Values in the cache as a reader of the product would have left them: what a commit invalidates must be gone after it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from redis.exceptions import RedisError

from shared.backends.redis import RedisStore, tag_key
from shared.backends.redis_connection import Connection
from shared.cache import Cache
from shared.clock import random_token

if TYPE_CHECKING:
    from collections.abc import Iterable

TTL = timedelta(hours=1)  # longer than any run: what is gone was dropped
ENTRY = "as it was"
LATE = "of a reader that is still loading"


class CachedTags:
    """Fills cache tags and looks whether anything is left of them."""

    def __init__(self, host: str, port: int) -> None:
        self._connection = Connection(host, port, tls=False, cluster=False)
        self._store = RedisStore(self._connection)

    def fill(self, tag: str, value: str) -> None:
        """Keep a value under the tag, and leave the token of a reader that has not come back yet.

        Raises:
            CacheUnavailable: Redis does not answer.
        """
        Cache(self._store, random_token, TTL).read(tag, ENTRY, lambda: value)
        self._store.fetch(tag, LATE, random_token(), TTL)

    def present(self, tags: Iterable[str]) -> frozenset[str] | None:
        """The tags under which anything is kept, be it a reader's token; None if Redis does not answer."""
        try:
            client = self._connection.client()
            return frozenset(tag for tag in tags if client.exists(tag_key(tag)))
        except (RedisError, OSError):
            return None
