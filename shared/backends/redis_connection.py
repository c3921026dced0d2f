"""One client of Valkey or Redis for a process: how it connects, how long it waits, and what its failures mean."""

from __future__ import annotations

import contextlib
import threading
import time
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from redis import Redis, RedisCluster
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisClusterException, RedisError
from redis.retry import Retry

from shared.errors import CacheUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

CONNECT = timedelta(milliseconds=500)
SOCKET = timedelta(milliseconds=500)
IDLE_CHECK = timedelta(seconds=15)  # a connection idle for longer is tried before it is used: it may have been cut
TRIES = 1  # more after the first, on a new connection
PAUSE = timedelta(seconds=2)  # after a cluster could not be reached; its threads would wait for each other to find out


@dataclass(slots=True)
class Connection:
    """A client that is made when it is first used: a cluster client asks the server at once, which may be gone.

    Attributes:
        host: name or address.
        port: its port.
        tls: whether to speak TLS.
        cluster: whether it speaks the cluster protocol.
        most: connections kept, as many as threads use it.
    """

    host: str
    port: int
    tls: bool
    cluster: bool
    most: int = 10
    _client: Redis | RedisCluster | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _closed_until: float = 0.0

    def client(self) -> Redis | RedisCluster:
        """The client, safe to share between threads.

        Raises:
            RedisError: it cannot be made; for a moment nobody else waits to find out the same.
        """
        with self._lock:
            if self._client is None:
                if time.monotonic() < self._closed_until:
                    message = "Redis did not answer a moment ago."
                    raise RedisConnectionError(message)
                try:
                    self._client = self._connect()
                except (RedisError, RedisClusterException, OSError):
                    self._closed_until = time.monotonic() + PAUSE.total_seconds()
                    raise
            return self._client

    def _connect(self) -> Redis | RedisCluster:
        options: dict[str, Any] = {
            "host": self.host,
            "port": self.port,
            "ssl": self.tls,
            "socket_connect_timeout": CONNECT.total_seconds(),
            "socket_timeout": SOCKET.total_seconds(),
            "health_check_interval": int(IDLE_CHECK.total_seconds()),
            "retry": Retry(NoBackoff(), TRIES),
            "decode_responses": True,
            "max_connections": self.most,
        }
        return RedisCluster(**options) if self.cluster else Redis(**options)


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """Turn what the client raises into our error.

    Raises:
        CacheUnavailable: naming the class of what was raised.
    """
    try:
        yield
    except (RedisError, RedisClusterException, OSError) as error:
        message = f"Redis did not do it ({type(error).__name__})."
        raise CacheUnavailable(message) from error
