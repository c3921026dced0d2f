"""Rates in Valkey or Redis: one number for each name, by the server's clock, so that no two machines have to agree on theirs.

Our own script and not a library's, since it shares the process's one connection: its waits, its breaker, its user's rights.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from shared.backends.redis.keys import rate_key
from shared.backends.redis.lines import Command

if TYPE_CHECKING:
    from shared.backends.redis.connection import Connection
    from shared.rate import Rate

# Microseconds throughout. What is kept is when the next one would be due if all came evenly; it is at most a burst ahead.
# More than that was written before the server's clock was set back, or under a larger burst: it counts as a burst.
TAKE = """
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local interval, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
local due = tonumber(redis.call('GET', KEYS[1]) or now)
due = math.min(math.max(due, now), now + interval * burst)
local wait = due + interval - interval * burst - now
if wait > 0 then
  return wait
end
due = due + interval
redis.call('SET', KEYS[1], string.format('%.0f', due), 'PX', math.ceil((due - now) / 1000))
return 0
"""


@dataclass(frozen=True, slots=True)
class RedisRates:
    """Rates in Redis."""

    connection: Connection

    def take(self, name: str, rate: Rate) -> timedelta:
        """Let one more through, or tell how long to wait."""
        interval = max(1, round(rate.interval / timedelta(microseconds=1)))
        wait = self.connection.send(Command.script(TAKE, rate_key(name), str(interval), str(rate.burst)))
        return timedelta(microseconds=int(str(wait)))
