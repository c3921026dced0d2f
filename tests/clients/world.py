"""A run with clients before the real front door: the simulator's workers, relay, sweeper and weather behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from functions import front_door
from functions.http.reads import Reads
from shared.backends.memory.intake import MemoryIntakeStore
from shared.backends.memory.owned_jobs import MemoryOwnedJobs
from shared.backends.memory.rates import MemoryRates
from shared.clock import Surroundings
from shared.errors import CacheUnavailable, StoreUnavailable
from shared.item import Stored
from shared.settings import OwnerLimits
from tests.clients.books import Books
from tests.clients.client import Browser, Intent
from tests.door import Client
from tests.modes import Mode
from tests.simulation.faults import Faulty
from tests.simulation.scheduler import Died, Process, ProcessClock
from tests.simulation.world import FAULTY_SECONDS, World

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.door import Answer

ARRIVAL = FAULTY_SECONDS * 0.8  # seconds over which the clients come
LIMITS = OwnerLimits(requests_per_second=1, burst=5, unfinished=3)


class ClientWorld(World):
    """A run, made from its seed."""

    def __init__(self, seed: int, browsers: int, mode: Mode = Mode.NORMAL) -> None:
        super().__init__(seed, mode)
        self.clients.intents = []  # those of the simulator stay away
        self.browsers = browsers
        self.left = 0  # actors of clients that have not ended
        self.books = Books()
        self.intents: dict[tuple[str, str], str] = {}
        self.rates = MemoryRates(self.history.clock)

    def is_at_rest(self) -> bool:
        """Whether no client and nobody behind the front door has anything to do."""
        return not self.left and super().is_at_rest()

    def serve(self, ask: Callable[[Client], Answer]) -> Answer | None:
        """Let a process of the front door answer; None if it dies over it."""
        process = Process(f"door-{self.token()[-6:]}")
        clock = ProcessClock(self.scheduler, process)
        gone = StoreUnavailable("no answer")
        database: Any = Faulty(self.history, process, self.faults, gone)
        jobs: Any = Faulty(MemoryOwnedJobs(self.history), process, self.faults, gone)
        door = front_door.assemble(
            accepts=database,
            records=database,
            jobs=jobs,
            reads=Reads(database, None),
            closures=MemoryIntakeStore(),
            rates=Faulty(self.rates, process, self.faults, CacheUnavailable()),
            limits=LIMITS,
            here=Surroundings(clock, self.random, self.token),
            telemetry=self.telemetry,
        )
        try:
            return ask(Client(door))
        except Died:
            if not process.is_dead:  # the client itself
                raise
            return None

    def alongside(self, name: str, body: Callable[[], object]) -> None:
        """Let a client do something while it goes on."""
        self.left += 1

        def run() -> None:
            body()
            self.left -= 1

        self.scheduler.spawn(name, Process(name), run)

    def somebody_elses(self, owner: str) -> str | None:
        """An operation that this owner does not have."""
        others = [view for view in self.history.records.values() if view.names["owner"] not in {owner, "system"}]
        return self.random.choice(others).names["operation_id"] if others else None

    def _produce(self) -> None:
        coming = []
        for number in range(self.browsers):
            user = f"user-{number}"
            owner = f"jwt:https://login.example.com:{user}"
            wanted = []
            for place in range(self.random.choice((1, 1, 2))):
                key, order = f"{user}/{place}", f"order-{number}-{place}"
                intent = f"pi-{number}-{place}"
                draw = self.random.random()  # a few want to pay for what is not there, for another's order, or wrongly
                mine = draw < 0.96
                if mine or draw < 0.98:
                    whose = user if mine else "somebody-else"
                    wanted_by = intent if draw < 0.93 else f"{intent}-other"
                    item = {"order_id": order, "user_id": whose, "amount": "1", "currency": "EUR"}
                    self.history.items["orders", (order,)] = Stored(
                        {**item, "payment_intent_id": wanted_by, "status": "pending"}, 1
                    )
                self.intents[owner, key] = intent
                wanted.append(Intent(key, {"order_id": order, "payment_intent_id": intent}, mine=mine))
            coming.append((self.random.uniform(0, ARRIVAL), Browser(self, owner, user, wanted)))
        coming.sort(key=lambda pair: pair[0])
        self.alongside("arrivals", lambda: self._arrive(coming))

    def _arrive(self, coming: list[tuple[float, Browser]]) -> None:
        for begins, browser in coming:
            self.scheduler.sleep(begins - self.scheduler.now)
            self.alongside(browser.user, browser.live)

    def _read(self, here: Process) -> None:
        """Nobody reads through the cache here."""
        del here
