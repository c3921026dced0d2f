"""The three worlds in which everything must hold: as it is, with a lock that keeps nobody out, and with Redis gone.

No correctness may rest on a lease, nor on Redis being there.
"""

from __future__ import annotations

import contextlib
import os
from enum import StrEnum
from typing import TYPE_CHECKING, Any
from unittest import mock

from shared import runtime
from shared.backends.memory.cache import MemoryCache
from shared.backends.redis.gates import RedisGates
from shared.backends.redis.leases import RedisStore
from shared.errors import CacheUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import timedelta

    from shared.gate import Gate
    from shared.lease import Want
    from shared.tag import Tag

MODE = "TAHAN_TEST_MODE"
OUTAGE = 2  # exchanges that end a job, of each process, that find Redis gone before it is back for them


class Mode(StrEnum):
    """How the world is."""

    NORMAL = "normal"
    ALWAYS_GRANTED = "always-granted"
    REDIS_GONE = "redis-gone"


class GrantingCache(MemoryCache):
    """A lock that keeps nobody out."""

    def acquire_all(self, wants: Sequence[Want]) -> list[bool]:
        return [True] * len(wants)

    def renew(self, key: str, token: str, ttl: timedelta) -> bool:
        return True


class LostCache(MemoryCache):
    """Redis is gone for leases; invalidations come through, or no job would ever be acknowledged."""

    def acquire_all(self, wants: Sequence[Want]) -> list[bool]:
        raise CacheUnavailable

    def renew(self, key: str, token: str, ttl: timedelta) -> bool:
        raise CacheUnavailable


class GrantingStore(RedisStore):
    """As GrantingCache, over the real server."""

    acquire_all = GrantingCache.acquire_all
    renew = GrantingCache.renew


class LostStore(RedisStore):
    """As LostCache, over the real server; each process also fails to invalidate at first."""

    acquire_all = LostCache.acquire_all
    renew = LostCache.renew
    failed = 0

    def finish(self, tags: Sequence[Tag], leases: Sequence[tuple[str, str]]) -> None:
        if LostStore.failed < OUTAGE:
            LostStore.failed += 1
            raise CacheUnavailable
        super().finish(tags, leases)


class LostGates(RedisGates):
    """Gates that nobody reaches: each process keeps its own."""

    def _ask(self, script: str, gate: Gate, *arguments: str) -> list[Any]:
        raise CacheUnavailable


CACHES = {Mode.NORMAL: MemoryCache, Mode.ALWAYS_GRANTED: GrantingCache, Mode.REDIS_GONE: LostCache}
GATES = {Mode.NORMAL: RedisGates, Mode.ALWAYS_GRANTED: RedisGates, Mode.REDIS_GONE: LostGates}
STORES = {Mode.NORMAL: RedisStore, Mode.ALWAYS_GRANTED: GrantingStore, Mode.REDIS_GONE: LostStore}


def chosen() -> Mode:
    """The mode that `make faults MODE=` asks for."""
    return Mode(os.environ.get(MODE, Mode.NORMAL))


def asked_for() -> tuple[Mode, ...]:
    """The mode asked for; without a word all, for what is quick in each."""
    return (chosen(),) if MODE in os.environ else tuple(Mode)


@contextlib.contextmanager
def entered(mode: Mode) -> Iterator[None]:
    """Every runtime that is connected in the block lives in that mode."""
    LostStore.failed = 0
    with (
        mock.patch.object(runtime, "RedisStore", STORES[mode]),
        mock.patch.object(runtime, "RedisGates", GATES[mode]),
    ):
        yield
