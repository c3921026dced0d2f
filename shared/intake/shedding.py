"""Intake of a job type that is closed for a while: an operator says until when, and the front door hears of it within seconds.

What is accepted already goes on; only new requests are told to come again. Knows no HTTP and no store.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

from shared.errors import Refused, Unavailable

if TYPE_CHECKING:
    from datetime import datetime
    from random import Random

    from shared.clock import Clock

FRESH = timedelta(seconds=5)  # how long an answer of the store is believed
LONGEST_TOLD = timedelta(minutes=5)  # that a client is told: intake may be opened again before its time
SPREAD = 0.25  # more of the wait, by chance, so that not all come again in one moment


@dataclass(frozen=True, slots=True)
class Closed:
    """Intake is closed: until when, and why (for people; clients are not told)."""

    until: datetime
    reason: str

    def __post_init__(self) -> None:
        """Refuse a moment that means another on each machine.

        Raises:
            Refused: it has no time zone.
        """
        if self.until.tzinfo is None:
            message = "`until` has no time zone: give an aware datetime."
            raise Refused(message)


class IntakeStore(Protocol):
    """Where it is kept which job types are closed."""

    def closed(self, job_type: str) -> Closed | None:
        """What was last said of a job type; None if it was never closed, or was opened. It may have ended by now.

        Raises:
            Unavailable: no answer.
        """
        ...

    def close(self, job_type: str, closed: Closed) -> None:
        """Close intake; what was said before is forgotten.

        Raises:
            Unavailable: it may be closed.
        """
        ...

    def open(self, job_type: str) -> None:
        """Open intake again; nothing happens if it is open.

        Raises:
            Unavailable: it may be open.
        """
        ...


@dataclass(slots=True)
class _Heard:
    closed: Closed | None
    at: float  # by the monotonic clock


@dataclass(frozen=True, slots=True)
class Shedding:
    """Asks the store now and then, and remembers its answer."""

    store: IntakeStore
    clock: Clock
    random: Random
    _heard: dict[str, _Heard] = field(default_factory=dict)

    def check(self, job_type: str) -> None:
        """Return if intake is open. A store that does not answer changes nothing: what it said last holds, or it is open.

        Args:
            job_type: one that exists, since each is remembered.

        Raises:
            Unavailable: it is closed; with when to come again.
        """
        closed = self._closed(job_type)
        left = timedelta(0) if closed is None else closed.until - self.clock.now()
        if left > timedelta(0):
            wait = min(left, LONGEST_TOLD) * (1 + SPREAD * self.random.random())
            message = f"Intake of {job_type} is closed."
            raise Unavailable(message, dependency="intake", after=wait)

    def _closed(self, job_type: str) -> Closed | None:
        heard, now = self._heard.get(job_type), self.clock.monotonic()
        if heard is not None and now - heard.at < FRESH.total_seconds():
            return heard.closed
        try:
            closed = self.store.closed(job_type)
        except Unavailable:
            closed = None if heard is None else heard.closed
        self._heard[job_type] = _Heard(closed, now)
        return closed
