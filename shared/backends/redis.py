"""Leases and cache entries in Valkey or Redis. Every script touches one key, so one hash slot; every write has an expiry.

Scripts are sent as text (EVAL): the server caches them by content, and none can be missing after a failover.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast
from urllib.parse import quote

from shared.backends.redis_connection import translated
from shared.cache import Hit, Miss

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from shared.backends.redis_connection import Connection

# One write with expiry; a token that finds itself there had its reply lost.
ACQUIRE = """
local owner = redis.call('GET', KEYS[1])
if owner == false then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  return 1
end
if owner == ARGV[1] then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return 1
end
return 0
"""
RENEW = """
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 0
"""
RELEASE = """
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0
"""
# A tag is one hash: 'v' + name holds an entry, 't' + name the token of who may store it. Dropping the hash drops both.
# Its time-to-live counts from its first entry and is never prolonged, so that no entry is older than that.
FETCH = """
local value = redis.call('HGET', KEYS[1], 'v' .. ARGV[1])
if value then
  return value
end
redis.call('HSET', KEYS[1], 't' .. ARGV[1], ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3], 'NX')
return false
"""
STORE = """
if redis.call('HGET', KEYS[1], 't' .. ARGV[1]) ~= ARGV[2] then
  return 0
end
redis.call('HDEL', KEYS[1], 't' .. ARGV[1])
redis.call('HSET', KEYS[1], 'v' .. ARGV[1], ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[4], 'NX')
return 1
"""


def lease_key(key: str) -> str:
    """The Redis key of a lock key; the braces make it one hash slot, whatever characters the lock key has."""
    return f"lease:{{{_escaped(key)}}}"


def tag_key(tag: str) -> str:
    """The Redis key of a cache tag."""
    return f"cache:{{{_escaped(tag)}}}"


@dataclass(frozen=True, slots=True)
class RedisStore:
    """Leases and cache entries."""

    connection: Connection

    def acquire(self, key: str, token: str, ttl: timedelta) -> bool:
        """Take the key if it is free or already this token's."""
        return bool(self._eval(ACQUIRE, lease_key(key), token, _millis(ttl)))

    def renew(self, key: str, token: str, ttl: timedelta) -> bool:
        """Prolong, if the key is this token's."""
        return bool(self._eval(RENEW, lease_key(key), token, _millis(ttl)))

    def finish(self, tags: Sequence[str], leases: Sequence[tuple[str, str]]) -> None:
        """Invalidate tags and give back leases in one pipelined exchange."""
        with translated():
            pipeline = self.connection.client().pipeline(transaction=False)
            for tag in tags:
                pipeline.delete(tag_key(tag))
            for key, token in leases:
                # By its name: the method of a cluster pipeline refuses scripts, although it routes them by their key.
                pipeline.execute_command("EVAL", RELEASE, 1, lease_key(key), token)
            pipeline.execute()

    def fetch(self, tag: str, name: str, refill: str, ttl: timedelta) -> Hit | Miss:
        """Give the entry, or leave the refill token."""
        value = self._eval(FETCH, tag_key(tag), name, refill, _millis(ttl))
        return Miss(refill) if value is None else Hit(str(value))

    def store(self, tag: str, name: str, refill: str, value: str, ttl: timedelta) -> bool:
        """Store the entry if its token was not revoked."""
        return bool(self._eval(STORE, tag_key(tag), name, refill, value, _millis(ttl)))

    def _eval(self, script: str, key: str, *arguments: str) -> object:
        with translated():
            return cast("object", self.connection.client().eval(script, 1, key, *arguments))


def _escaped(name: str) -> str:
    return quote(name, safe="/:", errors="surrogatepass")


def _millis(time: timedelta) -> str:
    return str(max(1, int(time.total_seconds() * 1000)))
