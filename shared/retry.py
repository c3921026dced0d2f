"""When a failed job runs again: a strategy decides, as data; settlement applies it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from shared.classification import Kind
from shared.errors import DeclarationError
from shared.limits import LONGEST_HIDDEN

if TYPE_CHECKING:
    from random import Random


@dataclass(frozen=True, slots=True)
class Retry:
    """Attempts and waits of a job type: full jitter over `base` x 2^(attempt-1), at most `cap`.

    Unknown errors get `unknown_attempts` at the most, since a bug seldom heals.
    """

    max_attempts: int = 5
    base: timedelta = timedelta(seconds=10)
    cap: timedelta = timedelta(minutes=15)
    unknown_attempts: int = 3

    def __post_init__(self) -> None:
        """Refuse what cannot work.

        Raises:
            DeclarationError: with the repair.
        """
        if not 1 <= self.max_attempts <= 100:  # noqa: PLR2004 - the sentence below names it
            message = f"Retry(max_attempts={self.max_attempts}): give 1 to 100 attempts."
            raise DeclarationError(message)
        if not timedelta(0) < self.base <= self.cap <= LONGEST_HIDDEN:
            message = (
                f"Retry(base={self.base}, cap={self.cap}): give 0 < base <= cap <= {LONGEST_HIDDEN}"
                " (SQS hides a message for 12 hours at most)."
            )
            raise DeclarationError(message)
        if self.unknown_attempts < 1:
            message = f"Retry(unknown_attempts={self.unknown_attempts}): give at least 1."
            raise DeclarationError(message)

    def attempts_for(self, kind: Kind) -> int:
        """How many attempts an error of this kind may use up in all."""
        match kind:
            case Kind.TRANSIENT:
                return self.max_attempts
            case Kind.UNKNOWN:
                return min(self.unknown_attempts, self.max_attempts)
            case Kind.PERMANENT:
                return 1

    def wait(self, attempt: int, random: Random) -> timedelta:
        """The wait after the given attempt (1 is the first), drawn from (0, ceiling]."""
        ceiling = min(self.cap.total_seconds(), self.base.total_seconds() * 2.0 ** (attempt - 1))
        return timedelta(seconds=ceiling * (1 - random.random()))

    def at_pace(self, pace: float) -> Retry:
        """The same strategy with every duration multiplied by `pace`."""
        return Retry(self.max_attempts, self.base * pace, self.cap * pace, self.unknown_attempts)
