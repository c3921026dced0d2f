"""One simulated run: producers, workers that die, a relay, readers of the cache, a provider; then healing, then the checks."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from operator import methodcaller
from random import Random
from typing import TYPE_CHECKING, Any

from functions.orders import ORDERS
from functions.outbox_sweeper import Round, Sweeper
from shared.cache import Cache
from shared.caching.lives import Lifetimes
from shared.caching.store import Loaded
from shared.clock import Surroundings
from shared.delivery import read_event
from shared.errors import Ambiguous, CacheUnavailable, StoreUnavailable, Unavailable
from shared.item import Stored
from shared.outcome import Completed, Duplicate
from shared.producer import NotTaken, Outgoing
from shared.rounds.counting import Counting
from shared.rounds.recurrence import Recurring
from shared.rounds.relay import Relay
from shared.rounds.rescue import Rescue
from shared.runtime import assemble
from shared.tag import Version
from shared.telemetry import Silent
from tests.modes import CACHES, Mode
from tests.simulation.again import Requests
from tests.simulation.clients import Clients
from tests.simulation.faults import Faults, Faulty, Records, Weather
from tests.simulation.history import LOST_AFTER, History, Queue, Watched
from tests.simulation.jobs import BATCH, GATE, SIM_WORKER, Outside
from tests.simulation.outages import Outages
from tests.simulation.replays import Replays
from tests.simulation.scheduler import Process, ProcessClock, Scheduler
from tests.simulation.splits import Splits

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from shared.delivery import Delivery
    from shared.pipeline.preparation import Prepared
    from shared.runtime import Runtime

FAULTY_SECONDS = 1500.0
REST_SECONDS = 6 * 3600.0
GRACE = timedelta(seconds=1)
SWEEP = timedelta(seconds=55)


@dataclass
class Calls:
    """The way to the outside systems; notes when a call begins."""

    way: Faulty
    history: History
    clock: ProcessClock

    def send(self, dependency: Any, method: str, path: str, **named: Any) -> Any:
        if dependency is GATE:
            self.history.called(path, named["body"]["number"], self.clock.now())
        try:
            return self.way.send(dependency, method, path, **named)
        except Ambiguous as error:
            raise Ambiguous(str(error), dependency=dependency.name) from error


class World:
    """A run, made from its seed."""

    def __init__(self, seed: int, mode: Mode = Mode.NORMAL) -> None:
        self.random = Random(seed)  # noqa: S311 - repeatable
        self.mode = mode
        self.telemetry = Silent()
        self.scheduler = Scheduler(self.random)
        self.faults = Faults(self.scheduler, self.random, Weather.drawn(self.random))
        self.tokens = 0
        outside = ProcessClock(self.scheduler, Process("outside"))
        self.history = History(outside)
        self.outages = Outages(self)
        self.history.outages = self.outages
        self.outside = Outside(self.outages.check_up)
        self.cache = Watched(CACHES[mode](outside), self.history)
        self.queue = Queue(
            self.history, self.faults, outside, SIM_WORKER.visibility_timeout, SIM_WORKER.max_receive_count
        )
        self.streamed: set[str] = set()
        self.bodies: list[str] = []
        self.amounts: dict[str, dict[str, int]] = {}
        self.spread = self.random.choice((1.0, 30.0))  # seconds over which messages are sent
        self.days: dict[str, dict[str, int]] = {}
        self.clients = Clients(self)
        self.healed_at = 0.0
        self.requests = Requests(self)
        self.replays = Replays(self)
        self.splits = Splits(self)
        self.history.splits = self.splits

    def run(self) -> None:
        """Faults for a while, then none, until all is at rest."""
        self._produce()
        for number in range(3):
            self.spawn(f"poller-{number}", partial(self._poll, number))
        self.spawn("relay", self._relay)
        self.spawn("sweeper", self._sweep)
        self.clients.begin()
        self.requests.begin()
        self.outages.begin()
        self.replays.begin()
        self.splits.begin()
        for number in range(2):
            self.spawn(f"reader-{number}", self._read)
        if self.faults.weather.amnesia:
            self.spawn("amnesia", self._forget)
        try:
            self.scheduler.run(lambda: self.scheduler.now > FAULTY_SECONDS, FAULTY_SECONDS + 1)
            self.faults.heal()
            self.healed_at = self.scheduler.now
            self.scheduler.run(self.is_at_rest, REST_SECONDS)
        finally:
            self.scheduler.stop()

    def is_at_rest(self) -> bool:
        """Whether nothing is left to do."""
        told = self.history.sent.keys() | self.history.parked.keys()
        watched = any(view.look_at is not None for view in self.history.records.values())
        return (
            not self.queue.messages
            and self.history.outbox.keys() <= told
            and not watched
            and self.clients.are_done
            and not self.requests.left
            and not self.replays.left
            and self.splits.counted == len(self.history.records.ends)
        )

    def token(self) -> str:
        """A fresh name."""
        self.tokens += 1
        return f"{self.tokens:032x}"

    # What is sent.

    def _produce(self) -> None:
        for number in range(self.random.randint(1, 3)):
            order, intent = f"order-{number}", f"pi-{number}"
            item = {"order_id": order, "user_id": "u", "amount": "1", "currency": "EUR", "payment_intent_id": intent}
            self.history.items["orders", (order,)] = Stored({**item, "status": "pending"}, 1)
            for key in ("first", "second")[: self.random.randint(1, 2)]:
                self.send("capture-payment", f"{order}/{key}", {"order_id": order, "payment_intent_id": intent})
        for number in range(self.random.randint(2, 6)):
            account, amount = f"account-{number % 2}", self.random.randint(1, 9)
            key = f"add-{number}"
            self.amounts.setdefault(account, {})[key] = amount
            self.send("add", key, {"account": account, "amount": amount})
        for number in range(self.random.randint(1, 4)):
            plant, days = f"plant-{number % 2}", self.random.randint(1, 4)
            key = f"grow-{number}"
            self.days.setdefault(plant, {})[key] = days
            self.send("grow", key, {"plant": plant, "days": days})
        for number in range(self.random.randint(0, 4)):
            self.send("move", f"move-{number}", {"line": f"line-{number % 2}"})
        self.splits.send()
        self.send("capture-payment", "hopeless", {"order_id": "absent", "payment_intent_id": "pi"})

    def send(self, job_type: str, key: str, payload: dict[str, Any]) -> None:
        body = json.dumps({"job_type": job_type, "idempotency_key": key, "payload": payload})
        self.bodies.append(body)
        self.send_copies(body)

    def send_copies(self, body: str) -> None:
        """A producer sends a message, and perhaps copies of it."""
        for _ in range(self.random.randint(1, 3)):
            message = Outgoing(body, delay=timedelta(seconds=self.random.uniform(0, self.spread)))
            self._sent(message)

    def _sent(self, message: Outgoing) -> None:
        """Send it, again where the queue did not take it."""
        while isinstance(self.queue.send([message])[0], NotTaken):
            continue

    # Who works.

    def spawn(self, name: str, body: Any) -> None:
        """Begin an actor in a process of its own."""
        process = Process(name)
        self.scheduler.spawn(name, process, lambda: body(process))

    def _lose(self) -> None:
        """A message is gone, as if its queue had kept it for too long, or had moved it away: one that was accepted."""
        accepted = [name for name, message in self.queue.messages.items() if '"record":' in message.body]
        if accepted and self.faults.happens("vanishes"):
            del self.queue.messages[self.random.choice(accepted)]

    def _poll(self, number: int, here: Process) -> None:
        """Lambda's event source mapping: gives batches to a process, and a new one to the next when it dies."""
        _ = here
        process: Process | None = None
        while True:
            self.scheduler.sleep(self.random.uniform(0.1, 2.0))
            self._lose()
            if not self.queue.has_visible or not self.outages.mappings.lets(number):
                continue
            twice = self.faults.happens("duplicate")
            records = self.queue.receive(BATCH, order=self.random.shuffle, hidden=not twice)
            if not records:  # what was there has been moved to the dead letters
                continue
            batch = list(read_event({"Records": records}))
            self.history.received |= {delivery.body for delivery in batch}
            if process is None or process.is_dead or process.is_retired:
                skew = self.faults.weather.skew
                offset = timedelta(seconds=self.random.uniform(-skew, skew))
                process = Process(f"worker-{self.token()[-4:]}", offset)
            self._invoke(process, batch)

    def _invoke(self, process: Process, batch: list[Delivery]) -> None:
        runtime = self._runtime(process)
        ends = self.scheduler.now + SIM_WORKER.function_timeout.total_seconds()
        until = runtime.clock.now() + SIM_WORKER.function_timeout
        done: dict[str, bool] = {}

        def prepare() -> None:
            at_once = {delivery.message_id for delivery in batch}
            prepared = runtime.execution.preparation.together(batch, at_once, until)
            for delivery in batch:
                here = partial(run, delivery, prepared.get(delivery.message_id))
                self.scheduler.spawn(f"job-{delivery.message_id}", process, here)

        def run(delivery: Delivery, prepared: Prepared | None) -> None:
            done[delivery.receipt_handle] = self._run(runtime, delivery, until, prepared)

        self.scheduler.spawn("invocation", process, prepare)
        self.scheduler.spawn("renewal", process, lambda: self._renew(runtime, done, len(batch)))
        while len(done) < len(batch) and not process.is_dead:
            self.scheduler.sleep(0.2)
            if self.faults.happens("stops"):
                runtime.stopping.set()  # SIGTERM: what runs is handed back, and the process is not used any more
            if self.scheduler.now >= ends:
                self.scheduler.kill(process)  # Lambda ends what runs over its timeout
        if process.is_dead:
            return
        process.is_retired = runtime.stopping.is_set()
        for delivery in batch:
            if done[delivery.receipt_handle] and not self.faults.happens("undeleted"):
                self.queue.delete(delivery.receipt_handle)

    def _run(self, runtime: Runtime, delivery: Delivery, until: datetime, prepared: Prepared | None) -> bool:
        outcome = runtime.execution.execute(delivery, until, prepared)
        acknowledged = runtime.settlement.settle(delivery, outcome)
        if acknowledged and isinstance(outcome, Completed | Duplicate):
            self.history.ended(delivery)
        return acknowledged

    def _renew(self, runtime: Runtime, done: dict[str, bool], number: int) -> None:
        while len(done) < number:
            wait = runtime.keeper.renew_due()
            self.scheduler.sleep(min(max(wait, 0.05), 1.0))

    def _runtime(self, process: Process) -> Runtime:
        database = Faulty(self.history, process, self.faults, StoreUnavailable("no answer"))
        clock = ProcessClock(self.scheduler, process)
        return assemble(
            SIM_WORKER,
            records=Records(database),
            items=database,
            outbox=database,
            parts=database,
            leases=Faulty(self.cache, process, self.faults, CacheUnavailable()),
            gates=self.outages.gates_for(process),
            queue=Faulty(self.queue, process, self.faults, Unavailable("no answer", dependency="sqs")),
            transport=Calls(
                Faulty(self.outside, process, self.faults, Ambiguous("no answer", dependency="outside")),
                self.history,
                clock,
            ),
            telemetry=self.telemetry,
            clock=clock,
            random=self.random,
            tokens=self.token,
            gathering=timedelta(0),  # waiting is real time
        )

    def _relay(self, here: Process) -> None:
        """The stream: gives each outbox item to the relay until one goes through; now and then it loses some."""
        while True:
            self.scheduler.sleep(self.random.uniform(0.2, 3.0))
            fresh = [posting for name, posting in self.history.outbox.items() if name not in self.streamed]
            if not fresh:
                continue
            if self.faults.happens("unstreamed") or self._ends_well(here.name, methodcaller("relay", fresh)):
                self.streamed |= {posting.id for posting in fresh}

    def _sweep(self, here: Process) -> None:
        """The schedule: a sweep every minute, whatever became of the one before."""
        while True:
            self.scheduler.sleep(60.0)
            self._ends_well(here.name, self._sweep_once)

    def _sweep_once(self, relay: Relay) -> None:
        """A round of the sweeper, over one database."""
        database: Any = relay.outbox
        sweeper = Sweeper(database, relay, relay.clock, self.random, self.telemetry)
        workers = {job.name: SIM_WORKER.name for job in SIM_WORKER.jobs}
        rescue = Rescue(
            database,
            database,
            workers,
            relay.clock,
            self.telemetry,
            Counting(database, workers, relay.clock),
            LOST_AFTER,
        )
        watchdog = self.outages.watchdog(database._process, relay.clock)
        Round(sweeper, rescue, Recurring(database, (), relay.clock), watchdog).make(relay.clock.now() + SWEEP)

    def _ends_well(self, name: str, run: Callable[[Relay], None]) -> bool:
        """Let a new process do something with a relay; give whether it did it."""
        ended: list[bool] = []

        def go(process: Process) -> None:
            gone = Unavailable("no answer", dependency="aws")
            queue = Faulty(self.queue, process, self.faults, gone)
            outbox = Faulty(self.history, process, self.faults, gone)
            clock = ProcessClock(self.scheduler, process)
            relay = Relay(outbox, outbox, lambda _: queue, clock, self.random, self.telemetry)
            try:
                run(relay)
            except Unavailable:
                ended.append(False)
            else:
                ended.append(True)

        self.within(name, go, ended)
        return ended == [True]

    def within(self, name: str, go: Callable[[Process], None], ended: list[Any]) -> None:
        """Run in a new process, until it notes its end there or dies."""
        process = Process(name)
        self.scheduler.spawn(f"{name}-run", process, lambda: go(process))
        while not ended and not process.is_dead:
            self.scheduler.sleep(0.2)

    def _read(self, here: Process) -> None:
        """Reads orders through the cache, as a front door would."""
        entries = Faulty(
            self.cache, here, Faults(self.scheduler, self.random, Weather(), healed=True), CacheUnavailable()
        )
        surroundings = Surroundings(ProcessClock(self.scheduler, here), self.random, self.token)
        lifetimes = Lifetimes(soft=timedelta(minutes=10), hard=timedelta(hours=12))
        cache = Cache(entries, surroundings, self.telemetry, lifetimes, renewal=lambda _renew, _every: nullcontext())
        orders = [key for table, key in self.history.items if table == "orders"]
        while True:
            self.scheduler.sleep(self.random.uniform(0.5, 10.0))
            key = self.random.choice(orders)

            def load(key: tuple[str, ...] = key) -> Loaded:
                stored = self.history.read(ORDERS, key)
                assert stored is not None
                self.scheduler.sleep(self.random.choice((0.01, 0.01, 40.0)))  # slow readers bring old values back
                return Loaded(json.dumps(stored.attributes["status"]), Version(stored.version))

            begun = self.scheduler.now
            status = json.loads(cache.read(f"order/{key[0]}", "status", load) or "null")
            self.history.saw(key[0], status, begun)

    def _forget(self, here: Process) -> None:
        """Redis loses everything, now and then."""
        _ = here
        while not self.faults.healed:
            self.scheduler.sleep(self.random.uniform(1, 300))
            self.faults.fired["amnesia"] += 1
            self.cache.forget()
