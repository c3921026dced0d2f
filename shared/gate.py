"""What keeps the calls of an outside system within bounds, over all workers: declared values, a gate's answers, its store.

Before a call its worker enters the gate of the dependency, and leaves it with how the call went. A gate turns callers away
while its circuit breaker is open, and where the rate, the concurrency or the retry budget is used up. Knows no Redis.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Protocol

from shared.errors import DeclarationError
from shared.rate import Rate

MOST_CALLS = 1000
LONGEST_PAUSE = timedelta(hours=1)
LEAST_RAMP = 0.1  # of the rate, at which callers come back when a breaker closes
CALL_MARGIN = timedelta(seconds=5)  # beyond its timeout, after which a call that never left is over: its process died


@dataclass(frozen=True, slots=True)
class CircuitBreaker:
    """Opens when calls fail one after another, whoever makes them; then one caller looks now and then, until it is served.

    Attributes:
        failures: as many in a row open it.
        pause: until the first look; each look in vain doubles it.
        longest_pause: and no further than that.
        ramp: once it is closed, the rate grows from a tenth to the whole over this time.
    """

    failures: int = 5
    pause: timedelta = timedelta(seconds=30)
    longest_pause: timedelta = timedelta(minutes=5)
    ramp: timedelta = timedelta(minutes=1)

    def __post_init__(self) -> None:
        """Refuse what never opens, or never closes.

        Raises:
            DeclarationError: with the repair.
        """
        if self.failures < 1 or self.ramp < timedelta(0):
            message = (
                f"CircuitBreaker(failures={self.failures}, ramp={self.ramp}): give 1 or more, and a ramp of 0 or more."
            )
            raise DeclarationError(message)
        if not timedelta(0) < self.pause <= self.longest_pause <= LONGEST_PAUSE:
            message = (
                f"CircuitBreaker(pause={self.pause}, longest_pause={self.longest_pause}): give 0 < pause <="
                f" longest_pause <= {LONGEST_PAUSE}."
            )
            raise DeclarationError(message)

    def at_pace(self, pace: float) -> CircuitBreaker:
        """The same with every duration multiplied by `pace`."""
        return CircuitBreaker(self.failures, self.pause * pace, self.longest_pause * pace, self.ramp * pace)


@dataclass(frozen=True, slots=True)
class RetryBudget:
    """How many attempts may call for jobs that failed before: a share of the others, and some that a quiet hour needs.

    An attempt counts once, by its first call there, however many it makes.

    Attributes:
        share: retries allowed for each first try, over all workers.
        per_minute: allowed beside them.
        burst: the most that is saved up.
    """

    share: float = 0.1
    per_minute: float = 10
    burst: int = 20

    def __post_init__(self) -> None:
        """Refuse what would never let a job be tried again.

        Raises:
            DeclarationError: with the repair.
        """
        if not 0 <= self.share <= 1 or not 0 < self.per_minute <= 60_000 or self.burst < 1:  # noqa: PLR2004 - as is told
            message = (
                f"RetryBudget(share={self.share:g}, per_minute={self.per_minute:g}, burst={self.burst}): give a share of 0"
                " to 1, more than 0 and at most 60000 a minute, and a burst of 1 or more."
            )
            raise DeclarationError(message)

    def at_pace(self, pace: float) -> RetryBudget:
        """The same where every duration is multiplied by `pace`."""
        return RetryBudget(self.share, min(self.per_minute / pace, 60_000), self.burst)

    def shared_by(self, processes: int) -> RetryBudget:
        """One process's part of it."""
        return RetryBudget(self.share, self.per_minute / processes, max(1, self.burst // processes))


@dataclass(frozen=True, slots=True)
class Gate:
    """The bounds of one dependency's calls; None where there is no such bound.

    Attributes:
        name: of the dependency.
        call: how long one call may take.
        rate: calls a second, over all workers.
        concurrency: calls at one time, over all workers.
        retries: how many calls may be repetitions.
        breaker: when nobody calls for a while. What it lets through again it lets through at the rate.
    """

    name: str
    call: timedelta
    rate: Rate | None = None
    concurrency: int | None = None
    retries: RetryBudget | None = None
    breaker: CircuitBreaker | None = None

    def __post_init__(self) -> None:
        """Refuse bounds that contradict each other.

        Raises:
            DeclarationError: with the repair.
        """
        if self.concurrency is not None and not 1 <= self.concurrency <= MOST_CALLS:
            message = (
                f"Dependency({self.name!r}): concurrency={self.concurrency} must be 1 to {MOST_CALLS} calls at a time."
            )
            raise DeclarationError(message)
        if self.breaker is not None and self.rate is None:
            message = (
                f"Dependency({self.name!r}): a breaker without a rate would let all that waited come at once when it closes:"
                " give `rate`, too."
            )
            raise DeclarationError(message)

    @property
    def held(self) -> timedelta:
        """After which a call that never left counts as over."""
        return self.call + CALL_MARGIN

    @classmethod
    def read(cls, name: str, text: str) -> Gate:
        """What can be looked at from outside, from a function's settings."""
        call, longest, ramp = (timedelta(seconds=float(part)) for part in text.split())
        return cls(name, call, Rate(1), breaker=CircuitBreaker(pause=longest, longest_pause=longest, ramp=ramp))

    @property
    def written(self) -> str | None:
        """What `read` reads; None where there is no breaker."""
        if self.breaker is None:
            return None
        times = (self.call, self.breaker.longest_pause, self.breaker.ramp)
        return " ".join(f"{time.total_seconds():g}" for time in times)

    def shared_by(self, processes: int) -> Gate:
        """One process's part of the bounds, for as long as they cannot be kept together."""
        rate = self.rate and self.rate.shared_by(processes)
        most = self.concurrency and max(1, self.concurrency // processes)
        retries = self.retries and self.retries.shared_by(processes)
        return Gate(self.name, self.call, rate, most, retries, self.breaker)


class Turned(StrEnum):
    """Why a caller is turned away."""

    OPEN = "open"  # the breaker is, or another caller is looking whether it may close
    RATE = "rate"
    CONCURRENCY = "concurrency"
    RETRIES = "retries"


@dataclass(frozen=True, slots=True)
class TurnedAway:
    """Not now; it may be worth asking again after the wait."""

    why: Turned
    wait: timedelta


@dataclass(frozen=True, slots=True)
class Health:
    """How a dependency does, as whoever leaves its gate is told.

    Attributes:
        open_for: how long its breaker stays open; zero while it is closed.
        served: how long ago the youngest call that was served began; None if that is not remembered.
        opened: whether this call opened the breaker, which was closed before.
    """

    open_for: timedelta
    served: timedelta | None
    opened: bool = False


@dataclass(frozen=True, slots=True)
class GateState:
    """How a gate stands, for people and for the queue brake.

    Attributes:
        open_for: how long nobody is let in; zero while it is closed, or while one caller may look.
        down_for: how long ago the breaker opened that has not closed since; None while it is closed.
        calls: under way.
        failures: in a row.
        ramping: whether callers come back at less than the rate.
    """

    open_for: timedelta = timedelta(0)
    down_for: timedelta | None = None
    calls: int = 0
    failures: int = 0
    ramping: bool = False


class Gates(Protocol):
    """Where gates are kept. What is lost with them is how calls went a moment ago; all begin closed and full again.

    Each method may be repeated when its reply was lost: a token that has entered is in, one that has left is out.
    """

    def enter(self, gate: Gate, token: str, *, is_retry: bool, patience: timedelta) -> TurnedAway | timedelta:
        """Let a call in under a name of its own, or turn it away; nothing is counted then.

        It is to be made after the wait that is given: its place by the rate comes then, within the patience.

        Raises:
            CacheUnavailable: nobody can tell.
        """
        ...

    def leave(self, gate: Gate, token: str, *, served: bool | None) -> Health:
        """Note how a call went: served, failed, or (None) never made. One that is not in changes nothing.

        Raises:
            CacheUnavailable: nobody can tell; the call is over for the gate after its longest time.
        """
        ...

    def look(self, gate: Gate) -> GateState:
        """How a gate stands.

        Raises:
            CacheUnavailable: nobody can tell.
        """
        ...
