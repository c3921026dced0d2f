"""A load of jobs for a worker in a process of its own: what it is told, and how it takes the time of it."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

THREADS = 10
PATIENCE = 120.0  # seconds


@dataclass(frozen=True, slots=True)
class Load:
    """What a worker is to do.

    Attributes:
        jobs: that are counted.
        warm: that are done before, so that nothing is opened or imported while it counts.
        wait: of each job, in milliseconds.
        guarded: whether peers get idempotency, lock and invalidation as their users would add them.
        polled: whether our worker takes the messages from the queue; else batches are handed to it, as Lambda does.
    """

    jobs: int
    warm: int
    wait: int
    guarded: bool
    polled: bool = True

    @property
    def text(self) -> str:
        """For the command line."""
        return json.dumps(asdict(self))

    @property
    def names(self) -> list[str]:
        """A name for each job, the warm ones included."""
        return [f"t{place}" for place in range(self.warm + self.jobs)]


class Meter:
    """Counts jobs as they end, from any thread; between the last warm one and the last of all it takes the time."""

    def __init__(self, load: Load) -> None:
        """Begin with none."""
        self._load = load
        self._lock = threading.Lock()
        self._done = 0
        self._begun = self._ended = (0.0, 0.0)
        self._over = threading.Event()

    def ended(self, number: int = 1) -> None:
        """So many have ended."""
        with self._lock:
            before, self._done = self._done, self._done + number
            if before < self._load.warm <= self._done:
                self._begun = time.perf_counter(), time.process_time()
            if self._done >= self._load.warm + self._load.jobs and not self._over.is_set():
                self._ended = time.perf_counter(), time.process_time()
                self._over.set()

    @property
    def is_over(self) -> bool:
        """Whether all have ended."""
        return self._over.is_set()

    def wait(self) -> None:
        """Wait until all have ended.

        Raises:
            TimeoutError: they do not.
        """
        if not self._over.wait(PATIENCE):
            message = f"{self._done} of {self._load.warm + self._load.jobs} jobs have ended"
            raise TimeoutError(message)

    @property
    def spent(self) -> dict[str, float]:
        """Seconds of wall and of CPU, of the process, for all jobs that are counted."""
        wall, cpu = (end - begin for begin, end in zip(self._begun, self._ended, strict=True))
        return {"wall": wall, "cpu": cpu}


def run(work: Callable[[Load, Meter], None]) -> None:
    """Be such a worker: on the first core alone, where the system can do that; say what it took, and end at once."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    load = Load(**json.loads(sys.argv[1]))
    meter = Meter(load)
    work(load, meter)
    meter.wait()
    out.write(json.dumps(meter.spent))
    out.flush()
    os._exit(0)  # what a worker does to end in order is not its work
