"""How keys and durations are written in Valkey or Redis. No other module of the backend names a key."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

if TYPE_CHECKING:
    from datetime import timedelta


def lease_key(key: str) -> str:
    """The Redis key of a lock key; the braces make it one hash slot, whatever characters the lock key has."""
    return f"lease:{{{escaped(key)}}}"


LEASES = "lease:{*"  # what finds all of them


def locked_by(key: str) -> str:
    """The lock key of a lease's Redis key."""
    return unquote(key.removeprefix("lease:{").removesuffix("}"))


def tag_key(tag: str) -> str:
    """The Redis key of a cache tag."""
    return f"cache:{{{escaped(tag)}}}"


def rate_key(name: str) -> str:
    """The Redis key of a rate."""
    return f"rate:{{{escaped(name)}}}"


def gate_key(name: str) -> str:
    """The Redis key of the state of a dependency's gate."""
    return f"gate:{{{escaped(name)}}}"


def calls_key(name: str) -> str:
    """The Redis key of the calls within a dependency's gate; in the hash slot of its state."""
    return f"gate:{{{escaped(name)}}}:calls"


@lru_cache(maxsize=1024)  # of the names that a process uses, some are hot
def escaped(name: str) -> str:
    """The name in characters that have no meaning in a key and that every encoding has."""
    return quote(name, safe="/:", errors="surrogatepass")


@lru_cache(maxsize=1024)
def millis(time: timedelta) -> str:
    """Whole milliseconds, at least one: Redis refuses an expiry of none."""
    return str(max(1, int(time.total_seconds() * 1000)))
