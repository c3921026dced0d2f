"""Values in the cache as a reader of the product would have left them: what a commit invalidates must be gone after it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, cast

from shared.backends.redis.cache import RedisCache
from shared.backends.redis.connection import Connection
from shared.backends.redis.keys import tag_key
from shared.caching.lives import Lives
from shared.caching.store import Loaded
from shared.clock import random_token
from shared.errors import CacheUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from redis import Redis, RedisCluster

TTL = timedelta(hours=1)  # longer than any run: what is gone was dropped
ENTRY = "as it was"
ENTRIES = "mt"  # how fields of entries and of refill tokens begin, see shared/backends/redis/cache.py
LATE = "of a reader that is still loading"


class CachedTags:
    """Fills cache tags and looks whether anything is left of them."""

    def __init__(self, host: str, port: int) -> None:
        self._connection = Connection(host, port, tls=False, cluster=False)
        self._entries = RedisCache(self._connection)

    def fill(self, tag: str, value: str) -> None:
        """Keep a value under the tag, and leave the token of a reader that has not come back yet.

        Raises:
            CacheUnavailable: Redis does not answer.
        """
        token = random_token()
        self._entries.fetch(tag, ENTRY, token, TTL, None)
        self._entries.store(tag, ENTRY, token, Loaded(value), Lives(TTL, TTL))
        self._entries.fetch(tag, LATE, random_token(), TTL, None)

    def present(self, tags: Iterable[str]) -> frozenset[str] | None:
        """The tags under which anything is kept, be it a reader's token; None if Redis does not answer."""

        def holds(client: Redis | RedisCluster, tag: str) -> bool:
            fields = cast("list[str]", client.hkeys(tag_key(tag)))
            return any(field[0] in ENTRIES for field in fields)  # a floor may stay, which brings nothing back

        try:
            return self._connection.run(lambda lines: frozenset(tag for tag in tags if holds(lines.client, tag)))
        except CacheUnavailable:
            return None
