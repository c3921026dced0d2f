"""One round: a fresh stack, load under chaos, healing, replay of what died, and the books at the end."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

from shared.backends.redis.cache import RedisCache
from shared.backends.redis.connection import Connection
from shared.cache import Cache
from shared.caching.store import Loaded
from shared.clock import Surroundings, SystemClock, random_token
from shared.errors import Unavailable
from shared.job_record import SYSTEM, JobView, Status, record_id
from shared.tag import Version
from shared.telemetry import Silent
from tests.faults.jobs import BARRELS, BREWS, CRASHING
from tests.soak.chaos import Chaos
from tests.soak.fleet import Fleet
from tests.soak.load import Load
from tests.stack import new_stack

if TYPE_CHECKING:
    from collections.abc import Callable

    from local.outside.payment_provider import Provider
    from local.stack.valkey import Valkey
    from tests.faults.burst import Burst
    from tests.soak.load import Wanted
    from tests.stack import Stack

VISIBILITY = 4  # seconds
FOR_EVER = frozenset({"unknown-order", "malformed-json"})  # reasons that no replay can cure
DONE = frozenset({Status.COMPLETED, Status.FAILED})


@dataclass
class Books:
    """How a round ended: where every message went, what fired, and what is wrong, if anything."""

    sent: int = 0
    completed: int = 0
    duplicates: int = 0
    dead_lettered: int = 0
    replayed: int = 0
    fired: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    @property
    def balance(self) -> int:
        """Messages that are nowhere."""
        return self.sent - self.completed - self.duplicates - self.dead_lettered


@dataclass
class Round:
    """One round."""

    number: int
    valkey: Valkey
    provider: Provider
    burst: Burst
    seconds: float
    patience: float = 240.0
    tell: Callable[[str], None] = lambda _: None

    def __post_init__(self) -> None:
        self.random = Random(self.number)  # noqa: S311 - repeatable
        self.stack: Stack = new_stack(self.valkey, self.provider, visibility=VISIBILITY, worker=CRASHING)
        self.load = Load(self.random, f"r{self.number}")
        self.books = Books()
        self.orders: list[str] = []  # that readers may ask for
        self.letters: list[tuple[str, dict[str, Any]]] = []  # that no replay can cure
        connection = Connection("127.0.0.1", self.valkey.port, tls=False, cluster=False)
        here = Surroundings(SystemClock(), Random(self.number), random_token)  # noqa: S311 - repeatable
        self.cache = Cache(RedisCache(connection), here, Silent())

    def run(self) -> Books:
        """Play it."""
        fleet = Fleet(self.random, self.stack.settings, self.burst.url, fired=self.books.fired)
        chaos = Chaos(self.random, fleet, self.valkey, self.burst, fired=self.books.fired)
        reading = threading.Event()
        reader = threading.Thread(target=self._read_until, args=(reading,))
        fleet.start()
        reader.start()
        chaos.start()
        try:
            self._send()
            chaos.calm()
            fleet.heal()
            self.tell("settling")
            self._wait_until_empty()
            self.books.replayed = self._replay()
            self.tell("replaying")
            self._wait_until_empty()
        finally:
            chaos.calm()
            reading.set()
            reader.join()
            fleet.end()
        self.books.wrong += [repr(error) for error in (*fleet.errors, *chaos.errors)]
        self._make_the_books()
        self.stack.database.drop()
        return self.books

    def _send(self) -> None:
        ends = time.monotonic() + self.seconds
        while time.monotonic() < ends:
            known = len(self.load.captures)
            bodies = self.load.draw()
            for order in self.load.captures[known:]:
                self.stack.seed(order_id=order.key, payment_intent_id=order.intent)
                self.orders.append(order.key)
            for body in bodies:
                self.stack.send(body)
                self.books.sent += 1
            time.sleep(self.random.uniform(0.0, 0.5))

    def _wait_until_empty(self) -> None:
        """Until nothing is on the queue or in the outbox, twice in a row."""
        deadline = time.monotonic() + self.patience
        rested = 0
        while rested < 2:
            rested = rested + 1 if self.stack.is_at_rest() else 0
            if time.monotonic() > deadline:
                self.books.wrong.append("I24: the queue is not empty")
                return
            time.sleep(0.3)

    def _replay(self) -> int:
        """Send back what died of something that is repaired now, as the desk would: with the number of its death."""
        replayed = 0
        for body, reason in self.stack.dead_letters(delete=lambda reason: reason["reason"] not in FOR_EVER):
            if reason["reason"] in FOR_EVER:
                self.letters.append((body, reason))
            else:
                self.stack.send(body, {"tahan.dead-letter": json.dumps(reason)})
                replayed += 1
        return replayed

    def _read_until(self, done: threading.Event) -> None:
        """A reader fills the cache all the time, with whatever it finds; by a chance of its own, being a thread of its own."""
        random = Random(self.number)  # noqa: S311 - repeatable
        while not done.wait(0.05):
            if self.orders:
                with contextlib.suppress(Unavailable):
                    self._cached(random.choice(self.orders))

    def _cached(self, order: str) -> str | None:
        def load() -> Loaded:
            found = self.stack.order(order)
            return Loaded(found["status"], Version(int(found["version"])))

        return self.cache.read(f"order/{order}", "status", load)

    # The books.

    def _make_the_books(self) -> None:
        letters: dict[str, list[dict[str, Any]]] = {}
        for body, reason in (*self.letters, *self.stack.dead_letters()):
            letters.setdefault(_key(body), []).append(reason)
        for wanted in self.load.wanted:
            self._account(wanted, letters.pop(wanted.key, []))
        for body in self.load.malformed:
            found = letters.pop(body, [])
            self.books.dead_lettered += bool(found)
        self.books.wrong += [f"I26: a dead letter that nobody sent: {key}" for key in letters if not _is_ours(key)]
        if self.books.balance:
            self.books.wrong.append(f"I26: {self.books.balance} messages are nowhere")
        for barrel, litres in self._poured().items():
            item = self.stack.database.items.read(BARRELS, (barrel,))
            held = None if item is None else int(str(item.attributes["litres"]))
            if held != litres:
                self.books.wrong.append(f"I14: {barrel} holds {held}, poured were {litres}")

    def _account(self, wanted: Wanted, letters: list[dict[str, Any]]) -> None:
        view = self._view(wanted)
        if view is None:
            return
        self.books.duplicates += wanted.copies - 1
        if view.status in DONE:
            self.books.completed += 1
            self._inspect(wanted, view)
        elif view.status is Status.DEAD_LETTERED and letters:
            self.books.dead_lettered += 1
            if not {letter["reason"] for letter in letters} <= FOR_EVER:
                self.books.wrong.append(f"I25: {wanted.key} died of {letters} and was not replayed")
        else:
            self.books.wrong.append(f"I24: {wanted.key} is {view.status}")

    def _inspect(self, wanted: Wanted, view: JobView) -> None:
        wrong = self.books.wrong
        if wanted.job_type == "brew":
            item = self.stack.database.items.read(BREWS, (wanted.key,))
            if item is None or (item.attributes["times"], item.version) != (1, 1):
                wrong.append(f"I14: {wanted.key} was brewed as {item}")
        if wanted.job_type != "capture-payment":
            return
        order, charges = self.stack.order(wanted.key), self.provider.ledger.charges_of(wanted.intent)
        paid = view.status is Status.COMPLETED
        if (order["status"], order["version"], len(charges)) != ("paid" if paid else "failed", "2", int(paid)):
            wrong.append(f"G4, G5: {order} with {len(charges)} charges, job {view.status}")
        if (kept := self._cached(wanted.key)) != order["status"]:
            wrong.append(f"I36: {wanted.key} is {order['status']}, the cache says {kept}")

    def _view(self, wanted: Wanted) -> JobView | None:
        records = self.stack.database.records(self.stack.runtime.clock)
        return records.view(record_id(SYSTEM, wanted.job_type, wanted.key))

    def _poured(self) -> Counter[str]:
        poured: Counter[str] = Counter()
        for wanted in self.load.wanted:
            view = self._view(wanted) if wanted.job_type == "pour" else None
            if view is not None and view.status is Status.COMPLETED:
                poured[str(wanted.payload["barrel"])] += int(str(wanted.payload["litres"]))
        return poured


def _key(body: str) -> str:
    """The key that a dead letter names; what cannot be read is its own."""
    try:
        return str(json.loads(body)["idempotency_key"])
    except (ValueError, KeyError, TypeError):
        return body


def _is_ours(key: str) -> bool:
    """Reconciling jobs are sent by the product itself."""
    return key.startswith("reconcile/")
