"""Outside systems: declared once, called with a deadline, their failures sorted into the three that matter.

What a dependency declares about rates, concurrency, retries and its breaker holds over all workers (see shared/gate.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from shared.errors import DeclarationError
from shared.gate import CircuitBreaker, Gate, RetryBudget
from shared.rate import MOST_A_SECOND, Rate
from shared.table import NAME

if TYPE_CHECKING:
    from collections.abc import Mapping


SAFE = frozenset({"GET", "HEAD", "OPTIONS"})  # methods that change nothing on the other side (RFC 9110, 9.2.1)


class WithoutGate(StrEnum):
    """What happens to calls while Redis, which keeps the gate, is gone."""

    GO_ON = "go-on"  # each process keeps a gate of its own, with its part of the bounds
    POSTPONE = "postpone"


class Keys(StrEnum):
    """Whether the other side takes an idempotency key with a request."""

    TAKEN = "taken"
    NOT_TAKEN = "not-taken"  # a request that may have been done is never repeated by itself


@dataclass(frozen=True, slots=True)
class Dependency:
    """An HTTP service outside the stack. Its base URL is a setting of the stage, by this name.

    Attributes:
        timeout: of one call: no answer within it is Ambiguous once the request was sent.
        connect: within which the connection must stand.
        rate: calls a second, over all workers.
        concurrency: calls at one time, over all workers.
        retries: how many calls may be made for jobs that failed before.
        breaker: when nobody calls for a while.
        without_redis: whether calls go on, or wait, while the bounds cannot be kept together.
        keys: whether requests may carry an idempotency key. Without, an intent is written before each request that changes
            something, and a later attempt that finds another's makes the job unknown.
        key_lifetime: for how long the other side remembers a key; an attempt of a job that began before does not repeat
            its request before somebody has asked what happened. None: for ever.
    """

    name: str
    timeout: timedelta = timedelta(seconds=10)
    connect: timedelta = timedelta(seconds=1)
    rate: Rate | None = None
    concurrency: int | None = None
    retries: RetryBudget | None = None
    breaker: CircuitBreaker | None = None
    without_redis: WithoutGate = WithoutGate.GO_ON
    keys: Keys = Keys.TAKEN
    key_lifetime: timedelta | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot work.

        Raises:
            DeclarationError: with the repair.
        """
        if not NAME.fullmatch(self.name):
            message = f"Dependency({self.name!r}): use lower case words joined by '-', like 'payment-provider'."
            raise DeclarationError(message)
        if not timedelta(0) < self.connect <= self.timeout:
            message = f"Dependency({self.name!r}): give 0 < connect ({self.connect}) <= timeout ({self.timeout})."
            raise DeclarationError(message)
        if self.key_lifetime is not None and (self.keys is Keys.NOT_TAKEN or self.key_lifetime <= 2 * self.timeout):
            message = (
                f"Dependency({self.name!r}): key_lifetime={self.key_lifetime} is for a service that takes keys, and"
                f" longer than two calls ({2 * self.timeout}): leave it out or raise it."
            )
            raise DeclarationError(message)
        _ = self.gate

    @property
    def gate(self) -> Gate | None:
        """The bounds of its calls; None if it declares none."""
        bounds = (self.rate, self.concurrency, self.retries, self.breaker)
        return None if bounds == (None,) * len(bounds) else Gate(self.name, self.timeout, *bounds)

    def is_repeatable(self, method: str) -> bool:
        """Whether a request may be sent again although it may have been done."""
        return method.upper() in SAFE or self.keys is Keys.TAKEN

    def has_forgotten(self, method: str, age: timedelta) -> bool:
        """Whether the other side may not know the key any more that was first used that long ago."""
        return (
            method.upper() not in SAFE and self.key_lifetime is not None and age > self.key_lifetime - 2 * self.timeout
        )

    def at_pace(self, pace: float) -> Dependency:
        """The same dependency with every duration multiplied by `pace`; a connection takes its time, but no more than a call."""
        timeout = self.timeout * pace
        return replace(
            self,
            timeout=timeout,
            connect=min(self.connect, timeout),
            rate=self.rate and Rate(min(self.rate.per_second / pace, MOST_A_SECOND), self.rate.burst),
            retries=self.retries and self.retries.at_pace(pace),
            breaker=self.breaker and self.breaker.at_pace(pace),
            key_lifetime=self.key_lifetime and self.key_lifetime * pace,
        )


@dataclass(frozen=True, slots=True)
class Reply:
    """What a dependency answered: the status, and the body as parsed JSON (None where it has none)."""

    status: int
    body: object


class Transport(Protocol):
    """Sends one request to a dependency, once; repeating it is the job's affair, not the transport's."""

    def send(  # noqa: PLR0913 - one request
        self,
        dependency: Dependency,
        method: str,
        path: str,
        *,
        body: Mapping[str, object] | None,
        headers: Mapping[str, str],
        within: timedelta,
    ) -> Reply:
        """Send, and give back any answer below 500 but 408 and 429; 503 and 429 were not done, other failures may be.

        Raises:
            Unavailable: it was certainly not done (no connection, 429, 503) or says to come again.
            Ambiguous: it may have been done (no answer in time, connection lost, 408, 500 and above).
        """
        ...
