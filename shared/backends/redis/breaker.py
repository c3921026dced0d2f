"""A circuit breaker: after some failures in a row nobody tries for a while; then one caller looks, alone, and decides.

It only counts and tells the time; what a failure is, and of what, its callers know.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

FAILURES = 5
PAUSE = timedelta(seconds=10)


@dataclass(slots=True)
class Breaker:
    """Safe to share between threads. Whoever enters with a permit reports how it went, exactly once.

    Attributes:
        failures: as many in a row open it.
        pause: how long it then stays open before one caller may look.
        monotonic: seconds since some moment.
    """

    failures: int = FAILURES
    pause: timedelta = PAUSE
    monotonic: Callable[[], float] = time.monotonic
    _in_a_row: int = 0
    _opened: float | None = None  # since when; None while it is closed
    _probing: bool = False
    _permit: int = 0  # those given out before have nothing to report any more
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def enter(self) -> int | None:
        """A permit to try; None while it is open, or while another looks whether it may close."""
        with self._lock:
            if self._opened is None:
                return self._permit
            if self._probing or self.monotonic() < self._opened + self.pause.total_seconds():
                return None
            self._probing = True
            self._permit += 1
            return self._permit

    def answered(self, permit: int) -> None:
        """It answered: the breaker is closed."""
        with self._lock:
            if permit == self._permit:
                self._in_a_row = 0
                self._opened = None
                self._probing = False

    def failed(self, permit: int) -> None:
        """It did not: one more in a row, or the look was in vain."""
        with self._lock:
            if permit != self._permit:
                return  # begun before the breaker opened: what it tells is old
            self._in_a_row += 1
            if self._probing or self._in_a_row >= self.failures:
                self._opened = self.monotonic()
                self._probing = False
                self._permit += 1

    def withdrew(self, permit: int) -> None:
        """The caller ended without finding out; another may look."""
        with self._lock:
            if permit == self._permit:
                self._probing = False
