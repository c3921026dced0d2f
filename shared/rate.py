"""Rates: how often something may be done, over all machines. Values and the store's Protocol; knows no Redis.

A rate is kept by the generic cell rate algorithm: one moment for each name, the one at which the last of what was let
through would have come had all come evenly. It is as exact as a token bucket and needs one number.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from shared.errors import DeclarationError

MOST_A_SECOND = 10_000
LONGEST_RUN = timedelta(days=1)  # that a burst may stand for, so that a name is forgotten within it


@dataclass(frozen=True, slots=True)
class Rate:
    """So many a second in the long run, and `burst` at once after a rest."""

    per_second: float
    burst: int = 1

    def __post_init__(self) -> None:
        """Refuse what would let through nothing, or keep a name for ever.

        Raises:
            DeclarationError: with the repair.
        """
        if not 0 < self.per_second <= MOST_A_SECOND or self.burst < 1 or self.interval * self.burst > LONGEST_RUN:
            message = (
                f"Rate(per_second={self.per_second:g}, burst={self.burst}): give more than 0 and at most {MOST_A_SECOND} a"
                f" second, and a burst of 1 or more that this rate makes up for within {LONGEST_RUN.days} day."
            )
            raise DeclarationError(message)

    def shared_by(self, processes: int) -> Rate:
        """One process's part of it: in all no more than the whole, but for what one process must be let through."""
        burst = max(1, self.burst // processes)
        return Rate(max(self.per_second / processes, burst / LONGEST_RUN.total_seconds()), burst)

    @property
    def interval(self) -> timedelta:
        """From one to the next, when they come evenly."""
        return timedelta(seconds=1 / self.per_second)


class Rates(Protocol):
    """Where rates are kept. What is lost with it is only that somebody was here a moment ago."""

    def take(self, name: str, rate: Rate) -> timedelta:
        """Let one more through, or tell how long to wait; nothing is counted then.

        Nothing to wait for is zero. A call whose reply is lost may be counted twice.

        Raises:
            CacheUnavailable: nobody can tell.
        """
        ...
