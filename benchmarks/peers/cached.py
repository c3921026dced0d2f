"""The caches that a user would pick: dogpile.cache and cashews, on the same Valkey, as their documentation sets them up."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from cashews import Cache
from dogpile.cache import make_region

if TYPE_CHECKING:
    from collections.abc import Callable

SECONDS = 600


def dogpile(port: int, *, distributed_lock: bool = False) -> Any:  # noqa: ANN401 - it has no types
    """A region of dogpile.cache; with the lock that its documentation advises for several processes, or without."""
    lock = {"distributed_lock": True, "thread_local_lock": False, "lock_timeout": 30} if distributed_lock else {}
    arguments = {"host": "127.0.0.1", "port": port, "redis_expiration_time": 2 * SECONDS, **lock}
    return make_region().configure("dogpile.cache.redis", expiration_time=SECONDS, arguments=arguments)


class Cashews:
    """cashews' decorator around a source, in a loop of its own."""

    def __init__(self, port: int) -> None:
        """Connect; nothing is cached in the process, since it would be the process's alone."""
        self.loop = asyncio.new_event_loop()
        self.cache = Cache()
        self.cache.setup(f"redis://127.0.0.1:{port}/0")

    def cached(self, load: Callable[[str], str], *, lock: bool = False, pause: float = 0) -> Any:  # noqa: ANN401 - it has no types
        """The source behind the cache, whose load waits that many seconds; with the lock across processes, or without."""

        @self.cache(ttl=SECONDS, key="thing:{name}", lock=lock)  # type: ignore[untyped-decorator]
        async def read(name: str) -> str:
            await asyncio.sleep(pause)
            return load(name)

        return read

    def run(self, work: Any) -> Any:  # noqa: ANN401 - a coroutine of any kind
        """Run to its end."""
        return self.loop.run_until_complete(work)

    def close(self) -> None:
        """End the connections and the loop."""
        self.run(self.cache.close())
        self.loop.close()
