"""The twin of rates in memory, by the clock given."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shared.clock import Clock
    from shared.rate import Rate


@dataclass(slots=True)
class MemoryRates:
    """Rates of one process; `due` in monotonic seconds."""

    clock: Clock
    due: dict[str, float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, name: str, rate: Rate) -> timedelta:
        """Let one more through, or tell how long to wait."""
        interval = rate.interval.total_seconds()
        with self._lock:
            now = self.clock.monotonic()
            due = min(max(self.due.get(name, now), now), now + interval * rate.burst)
            wait = timedelta(seconds=due + interval * (1 - rate.burst) - now)
            if wait > timedelta(0):
                return wait
            self.due[name] = due + interval
            return timedelta(0)
