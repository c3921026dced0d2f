"""Renews what must not run out while a job works: leases and heartbeats. Its thread lives as long as one invocation.

Lambda freezes a process between invocations: nothing of an earlier one may go on when it thaws.
"""

from __future__ import annotations

import math
import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    from types import TracebackType

    from shared.telemetry import Telemetry

IDLE = 3600.0  # seconds
LAST_RENEWAL = timedelta(seconds=1)  # one request may be on its way when an invocation ends; its thread then ends, too


class Renewable(Protocol):
    """Something held for a time; whoever holds it looks at `lost`."""

    lost: threading.Event

    def renew(self) -> float:
        """Renew, if it is time to; give the seconds until it is again. Sets `lost` when it cannot, as raising does."""
        ...

    def due_in(self) -> float:
        """Seconds until it is time to."""
        ...


class Keeper:
    """Keeps renewables while the `with` block lasts; what is still kept at its end is lost to its holder.

    Each block has a thread of its own. One that hung in a renewal when its block ended renews nothing of the next.
    """

    def __init__(self, telemetry: Telemetry) -> None:
        """Begin with nothing."""
        self._telemetry = telemetry
        self._kept: dict[int, Renewable] = {}
        self._changed = threading.Condition()
        self._block = 0  # its number; 0 between two of them
        self._blocks = 0
        self._news = False  # something was added that the thread must look at before it would have by itself
        self._looks_in = math.inf  # seconds at most until the thread looks again by itself, while it waits

    def __enter__(self) -> Self:
        """Begin to renew."""
        self._blocks += 1
        self._block = self._blocks
        self._thread = threading.Thread(target=self._renew_during, args=(self._block,), name="keeper", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop renewing."""
        with self._changed:
            self._block = 0
            for kept in self._kept.values():
                kept.lost.set()
            self._kept.clear()
            self._changed.notify_all()
        self._thread.join(LAST_RENEWAL.total_seconds())

    def keep(self, renewable: Renewable) -> None:
        """Renew it from now on."""
        with self._changed:
            self._kept[id(renewable)] = renewable
            if renewable.due_in() < self._looks_in:  # else it looks in time, and most leases are given back by then
                self._news = True
                self._changed.notify_all()

    def forget(self, renewable: Renewable) -> bool:
        """Renew it no more; tell whether it was kept until now."""
        with self._changed:
            return self._kept.pop(id(renewable), None) is not None

    def renew_due(self) -> float:
        """Renew all that is due; give the seconds until something is again."""
        with self._changed:
            kept = list(self._kept.values())
        wait = IDLE
        for renewable in kept:
            if renewable.lost.is_set():  # given up, or the invocation has ended meanwhile
                continue
            try:
                wait = min(wait, renewable.renew())
            except Exception as error:  # noqa: BLE001 - whatever it was, the others must still be renewed, and its holder must know
                renewable.lost.set()
                self._telemetry.warn("renewal_failed", error=type(error).__name__)
            if renewable.lost.is_set():
                self.forget(renewable)
        return wait

    def _renew_during(self, block: int) -> None:
        while True:
            wait = self.renew_due()
            with self._changed:
                if self._block == block and not self._news:
                    self._looks_in = wait
                    self._changed.wait(wait)
                    self._looks_in = math.inf
                if self._block != block:
                    return
                self._news = False
