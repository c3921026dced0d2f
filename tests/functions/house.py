"""A front door over memory, for tests that need no AWS."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

from functions import front_door
from functions.http.reads import Reads
from functions.orders import ORDERS
from shared.backends.memory.database import MemoryDatabase
from shared.backends.memory.intake import MemoryIntakeStore
from shared.backends.memory.owned_jobs import MemoryOwnedJobs
from shared.backends.memory.rates import MemoryRates
from shared.clock import Surroundings
from shared.item import Stored
from shared.settings import OwnerLimits
from shared.telemetry import NO_JOB_TYPE, Silent
from tests.door import Client
from tests.world import Counter as Names
from tests.world import FakeClock

LIMITS = OwnerLimits(requests_per_second=2, burst=4, unfinished=2)


@dataclass
class House:
    """A front door over memory, for owners that are limited."""

    limits: OwnerLimits = LIMITS
    rates: Any = None
    database: Any = None
    clock: FakeClock = field(default_factory=FakeClock)
    telemetry: Silent = field(default_factory=Silent)
    cache: Any = None
    closures: Any = field(default_factory=MemoryIntakeStore)

    def __post_init__(self) -> None:
        self.database = self.database or MemoryDatabase(self.clock)
        self.rates = self.rates or MemoryRates(self.clock)
        self.door = front_door.assemble(
            accepts=self.database,
            records=self.database,
            jobs=MemoryOwnedJobs(self.database),
            reads=Reads(self.database, self.cache),
            closures=self.closures,
            rates=self.rates,
            limits=self.limits,
            here=Surroundings(self.clock, Random(1), Names()),  # noqa: S311 - repeatable
            telemetry=self.telemetry,
        )
        self.http = Client(self.door, own=self.own)

    def own(self, order: str, user: str) -> None:
        """Let an order be this user's."""
        self.database.items[ORDERS.name, (order,)] = Stored({"order_id": order, "user_id": user}, 1)

    def counted(self, metric: str) -> int:
        return self.telemetry.counts[metric, NO_JOB_TYPE]
