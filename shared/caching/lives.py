"""How long cache entries live: spread by chance, so that what was stored together does not end together."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

    from shared.caching.store import Loaded


@dataclass(frozen=True, slots=True)
class Lives:
    """How long an entry lives, from when it is stored.

    Attributes:
        soft: after it one caller refreshes the entry, while the others get it as it is.
        hard: after it the entry is missing.
    """

    soft: timedelta
    hard: timedelta


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """Of what the life of each entry is drawn.

    Attributes:
        soft: drawn up to `jitter` shorter or longer.
        hard: how old a value gets at the most; drawn up to `jitter` shorter.
        absent: how long an absence is remembered at the most, soft and hard; drawn up to `jitter` shorter.
        jitter: a share, from 0 to 1.
    """

    soft: timedelta = timedelta(seconds=60)
    hard: timedelta = timedelta(seconds=600)
    absent: timedelta = timedelta(seconds=5)
    jitter: float = 0.2

    def of(self, entry: Loaded, random: Random) -> Lives:
        """Draw the life of an entry."""
        shorter = 1 - self.jitter * random.random()
        if entry.value is None:
            return Lives(self.absent * shorter, self.absent * shorter)
        hard = self.hard * shorter
        return Lives(min(hard, self.soft * random.uniform(1 - self.jitter, 1 + self.jitter)), hard)
