"""When jobs come, in seconds of virtual time: open loop, whoever waits keeps nobody from coming."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random


def poisson(rate: float, seconds: float, random: Random) -> Iterator[float]:
    """Jobs that know nothing of each other, so many a second in the mean."""
    now = random.expovariate(rate)
    while now < seconds:
        yield now
        now += random.expovariate(rate)


def bursts(rate: float, seconds: float, random: Random, *, every: float) -> Iterator[float]:
    """The same mean, but all that come within `every` seconds come at once, at a moment of it that chance chooses."""
    for number in range(math.floor(seconds / every)):
        moment = (number + random.random()) * every
        yield from (moment for _ in range(_how_many(rate * every, random)))


def _how_many(mean: float, random: Random) -> int:
    """A Poisson number, as arrivals of rate 1 within `mean` seconds."""
    return sum(1 for _ in poisson(1.0, mean, random)) if mean else 0
