"""A reader process with ten threads on one cold key, for tests that start five of them at once."""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING

from shared.backends.redis.cache import RedisCache
from shared.backends.redis.connection import Connection
from shared.cache import Cache
from shared.caching.store import Loaded
from shared.clock import Surroundings, SystemClock, random_token
from shared.telemetry import Silent

if TYPE_CHECKING:
    from multiprocessing.synchronize import Barrier
    from pathlib import Path

THREADS = 10
LEASE = timedelta(milliseconds=600)
PATIENCE = timedelta(seconds=20)  # the server answers, however busy the machine is


@dataclass(frozen=True)
class Readers:
    """What the processes are to do.

    Attributes:
        port: of the Valkey server.
        journal: a file that gets a line for each load that begins, ends or fails, and for each value read.
        load: how long one load takes; several leases.
        fails: how many loads, counted over all processes, raise.
        dies: whether the process that loads first ends in the middle of it.
    """

    port: int
    journal: Path
    load: timedelta
    fails: int = 0
    dies: bool = False

    def note(self, line: str) -> None:
        """Append a line, whole, whoever else appends."""
        with self.journal.open("ab", buffering=0) as file:
            file.write(f"{line}\n".encode())

    def loads(self) -> list[str]:
        """What became of the loads so far."""
        return [line for line in self.journal.read_text().splitlines() if not line.startswith("read")]

    def run(self, start: Barrier) -> None:
        """Read by ten threads once all processes are ready."""
        connection = Connection("127.0.0.1", self.port, tls=False, cluster=False, most=2 * THREADS + 2, wait=PATIENCE)
        cache = Cache(
            RedisCache(connection),
            Surroundings(SystemClock(), Random(os.getpid()), random_token),  # noqa: S311 - spreads waits
            Silent(),
            lease=LEASE,
            patience=timedelta(seconds=60),
            sample=0.0,
        )

        def read() -> None:
            with suppress(OSError):
                self.note(f"read {cache.read('cold', 'key', self._load)}")

        threads = [threading.Thread(target=read) for _ in range(THREADS)]
        start.wait(60)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _load(self) -> Loaded:
        before = len(self.loads())
        self.note("begins")
        if self.dies and before == 0:
            os._exit(1)
        time.sleep(self.load.total_seconds())
        if self.loads().count("fails") < self.fails:
            self.note("fails")
            message = "The source does not answer."
            raise OSError(message)
        self.note("ends")
        return Loaded("value")
