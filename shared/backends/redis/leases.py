"""Leases in Valkey or Redis, and the end of a job's work there.

Every script touches one key, so one hash slot; every write has an expiry. Each may be run twice, since the reply to the
first may have been lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shared.backends.redis.cache import drop
from shared.backends.redis.keys import lease_key, millis
from shared.backends.redis.lines import Command

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from shared.backends.redis.connection import Connection
    from shared.lease import Want
    from shared.tag import Tag

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


@dataclass(frozen=True, slots=True)
class RedisStore:
    """Leases; and invalidation, which goes along when they are given back."""

    connection: Connection

    def acquire_all(self, wants: Sequence[Want]) -> list[bool]:
        """Take each key if it is free or already its token's, in one pipelined exchange."""
        commands = [Command.script(ACQUIRE, lease_key(want.key), want.token, millis(want.ttl)) for want in wants]
        return [bool(reply) for reply in self.connection.exchange(commands)]

    def renew(self, key: str, token: str, ttl: timedelta) -> bool:
        """Prolong, if the key is this token's."""
        return bool(self._eval(RENEW, lease_key(key), token, millis(ttl)))

    def finish(self, tags: Sequence[Tag], leases: Sequence[tuple[str, str]]) -> None:
        """Invalidate tags and give back leases in one pipelined exchange."""
        drops = [drop(tag) for tag in tags]
        self.connection.exchange(drops + [Command.script(RELEASE, lease_key(key), token) for key, token in leases])

    def _eval(self, script: str, key: str, *arguments: str) -> object:
        return self.connection.send(Command.script(script, key, *arguments))
