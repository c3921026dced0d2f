"""Renews what must not run out while a job works: leases and heartbeats. Its thread lives as long as one invocation.

Lambda freezes a process between invocations: nothing of an earlier one may go on when it thaws.
"""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    from types import TracebackType

IDLE = 3600.0  # seconds
LAST_RENEWAL = timedelta(seconds=1)  # one request may be on its way when an invocation ends; its thread then ends, too


class Renewable(Protocol):
    """Something held for a time; whoever holds it looks at `lost`."""

    lost: threading.Event

    def renew(self) -> float:
        """Renew, if it is time to; give the seconds until it is again. Sets `lost` when it cannot, as raising does."""
        ...


class Keeper:
    """Keeps renewables while the `with` block lasts; what is still kept at its end is lost to its holder."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._kept: dict[int, Renewable] = {}
        self._changed = threading.Condition()
        self._open = False
        self._news = False  # something was added since the thread last looked

    def __enter__(self) -> Self:
        """Begin to renew."""
        self._open = True
        self._thread = threading.Thread(target=self._renew_while_open, name="keeper", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop renewing."""
        with self._changed:
            self._open = False
            for kept in self._kept.values():
                kept.lost.set()
            self._kept.clear()
            self._changed.notify()
        self._thread.join(LAST_RENEWAL.total_seconds())

    def keep(self, renewable: Renewable) -> None:
        """Renew it from now on."""
        with self._changed:
            self._kept[id(renewable)] = renewable
            self._news = True
            self._changed.notify()

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
            except Exception:  # noqa: BLE001 - whatever it was, the others must still be renewed, and its holder must know
                renewable.lost.set()
            if renewable.lost.is_set():
                self.forget(renewable)
        return wait

    def _renew_while_open(self) -> None:
        while True:
            wait = self.renew_due()
            with self._changed:
                if self._open and not self._news:
                    self._changed.wait(wait)
                if not self._open:
                    return
                self._news = False
