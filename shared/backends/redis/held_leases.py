"""Which leases are held, for people: found key by key beside the work, and never all at one moment."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from shared.backends.redis.keys import LEASES, lease_key, locked_by
from shared.backends.redis.lines import Command

if TYPE_CHECKING:
    from shared.backends.redis.connection import Connection
    from shared.backends.redis.lines import Client

LOOKED_AT = 20_000  # keys, of all kinds, that one list looks at
SHOW = """
return {redis.call('GET', KEYS[1]), redis.call('PTTL', KEYS[1])}
"""


@dataclass(frozen=True, slots=True)
class HeldLease:
    """A lease that is held: its lock key, who holds it (the first digits of its token), and for how long unless renewed."""

    key: str
    holder: str
    left: timedelta


@dataclass(frozen=True, slots=True)
class RedisLeases:
    """Leases in Redis, as people look at them."""

    connection: Connection

    def find(self, start: str, most: int) -> tuple[list[HeldLease], bool]:
        """Leases on lock keys that begin so, at the most so many; and whether these are all.

        Raises:
            CacheUnavailable: no answer.
        """
        names, complete = self.connection.run(lambda lines: _scanned(lines.client, start, most))
        held = [lease for name in names if (lease := self.show(name)) is not None]
        return held, complete

    def show(self, key: str) -> HeldLease | None:
        """The lease on a lock key; None if nobody holds it.

        Raises:
            CacheUnavailable: no answer.
        """
        reply: Any = self.connection.send(Command.script(SHOW, lease_key(key)))
        token, left = reply
        return None if not token else HeldLease(key, str(token)[:8], timedelta(milliseconds=max(0, int(left))))


def _scanned(client: Client, start: str, most: int) -> tuple[list[str], bool]:
    """Lock keys, as SCAN comes by them."""
    found: set[str] = set()
    scan: Any = client.scan_iter(match=LEASES, count=1000)
    for number, name in enumerate(scan):
        key = locked_by(str(name))
        if key.startswith(start):
            found.add(key)
        if len(found) > most or number > LOOKED_AT:
            return sorted(found)[:most], False
    return sorted(found), True
