"""Real Valkey servers that a test may break, its own way to them, and what they tell of what was done to them."""

from __future__ import annotations

import contextlib
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from redis import Redis

from shared.backends.redis.connection import Connection
from shared.backends.redis.leases import RedisStore
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from local.stack.valkey import Valkey

TTL = timedelta(seconds=20)
PATIENCE = 20.0


@contextlib.contextmanager
def asking(server: Valkey) -> Iterator[Any]:
    """The test's own way to a server, besides the product's."""
    with Redis(port=server.port, decode_responses=True, socket_timeout=PATIENCE) as redis:
        yield redis


def store_at(port: int, **options: Any) -> RedisStore:
    return RedisStore(Connection("127.0.0.1", port, tls=False, cluster=False, **options))


def follow(replica: Valkey, primary: Valkey) -> None:
    """Make one server the other's replica and wait until it has all of it."""
    with asking(primary) as redis:
        redis.config_set("repl-diskless-sync-delay", 0)
    with asking(replica) as redis:
        redis.replicaof(primary.host, primary.port)
        until(lambda: redis.info("replication")["master_link_status"] == "up")


def promote(replica: Valkey) -> None:
    with asking(replica) as redis:
        redis.replicaof("NO", "ONE")


def refusals(server: Valkey, code: str) -> int:
    """How often the server has said so."""
    with asking(server) as redis:
        said: Mapping[str, Any] = redis.info("errorstats").get(f"errorstat_{code}", {"count": 0})
        return int(said["count"])
