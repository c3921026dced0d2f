"""Time, chance and fresh names are passed in, so that tests and the simulator own them."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from random import Random


class Clock(Protocol):
    """Two clocks: one to agree on with others, one to measure with."""

    def now(self) -> datetime:
        """Wall-clock time, aware, UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds since some moment; never goes back."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class SystemClock:
    """The machine's clocks."""

    def now(self) -> datetime:
        """Wall-clock time."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds since some moment."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


class Tokens(Protocol):
    """A source of names that nobody else has."""

    def __call__(self) -> str:
        """Give a fresh token: 32 hexadecimal characters."""
        ...


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What code depends on without being told: time, chance, fresh names, and whether its process is to end."""

    clock: Clock
    random: Random
    tokens: Tokens
    stopping: threading.Event = field(default_factory=threading.Event)


def random_token() -> str:
    """Give 128 random bits as 32 hexadecimal characters."""
    return os.urandom(16).hex()


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLI = timedelta(milliseconds=1)


def to_millis(moment: datetime) -> int:
    """Milliseconds since the epoch, rounded down."""
    return (moment - _EPOCH) // _MILLI


def from_millis(millis: int) -> datetime:
    """The moment that many milliseconds after the epoch."""
    return _EPOCH + millis * _MILLI
