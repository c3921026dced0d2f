"""One simulated run: producers, workers that die, a relay, readers of the cache, a provider; then healing, then the checks."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any

from functions.outbox_relay import Relay
from functions.payments import ORDERS, WORKER
from shared.backends.memory import MemoryCache
from shared.cache import Cache
from shared.dependency import Reply
from shared.errors import Ambiguous, CacheUnavailable, Unavailable
from shared.item import Stored
from shared.job import job
from shared.outcome import Completed, Duplicate
from shared.payload import Payload
from shared.retry import Retry
from shared.runtime import assemble
from shared.table import Table
from shared.telemetry import Silent
from shared.worker import Worker
from tests.simulation.faults import Faults, Faulty, Weather
from tests.simulation.history import History
from tests.simulation.queue import SimQueue
from tests.simulation.scheduler import Process, ProcessClock, Scheduler

if TYPE_CHECKING:
    from shared.delivery import Delivery
    from shared.runtime import Runtime
    from shared.unit_of_work import UnitOfWork

ACCOUNTS = Table("accounts", key="id")
MODES = ("normal", "always-granted", "redis-gone")
FAULTY_SECONDS = 1500.0
REST_SECONDS = 6 * 3600.0
BATCH = 3
GRACE = timedelta(seconds=1)


class Add(Payload):
    """Add to an account."""

    account: str
    amount: int


@job(
    "add",
    timeout=timedelta(seconds=20),
    max_latency=timedelta(minutes=5),
    retry=Retry(max_attempts=6, base=timedelta(seconds=5), cap=timedelta(minutes=2)),
    uses=(ACCOUNTS.read_write,),
)
def add(payload: Add, work: UnitOfWork) -> int:
    """Without a lock, so that only the commit's conditions keep two apart."""
    account = work.read(ACCOUNTS, payload.account)
    work.invalidate(f"account/{payload.account}")
    if account is None:
        work.create(ACCOUNTS, id=payload.account, total=payload.amount)
        return payload.amount
    total = account["total"]
    assert isinstance(total, int)
    work.update(account, total=total + payload.amount)
    return total + payload.amount


class Impatient(Worker):
    """A queue that takes messages away after few receives, so that sending anew is simulated, too."""

    __slots__ = ()

    @property
    def max_receive_count(self) -> int:
        return 12


SIM_WORKER = Impatient(WORKER.name, jobs=(*WORKER.jobs, add), batch_size=BATCH, max_concurrency=WORKER.max_concurrency)


class AlwaysGranted(MemoryCache):
    """A lock that keeps nobody out."""

    def acquire(self, key: str, token: str, ttl: timedelta) -> bool:
        return True

    def renew(self, key: str, token: str, ttl: timedelta) -> bool:
        return True


class NoLeases(MemoryCache):
    """Redis is gone for leases."""

    def acquire(self, key: str, token: str, ttl: timedelta) -> bool:
        raise CacheUnavailable

    def renew(self, key: str, token: str, ttl: timedelta) -> bool:
        raise CacheUnavailable


@dataclass
class Provider:
    """Charges once for a key, and remembers by which intents."""

    charges: Counter[str] = field(default_factory=Counter)
    known: dict[str, dict[str, Any]] = field(default_factory=dict)

    def send(self, dependency: Any, method: str, path: str, *, body: Any, headers: Any, within: Any) -> Reply:
        if method == "GET":
            intent = path.partition("payment_intent_id=")[2]
            return Reply(200, {"charges": [c for c in self.known.values() if c["payment_intent_id"] == intent]})
        key = headers["Idempotency-Key"]
        if key not in self.known:
            intent = body["payment_intent_id"]
            self.charges[intent] += 1
            self.known[key] = {
                "charge_id": f"ch-{len(self.known)}",
                "payment_intent_id": intent,
                "amount": body["amount"],
                "currency": body["currency"],
            }
        return Reply(201, self.known[key])


class World:
    """A run, made from its seed."""

    def __init__(self, seed: int, mode: str = "normal") -> None:
        self.random = Random(seed)  # noqa: S311 - repeatable
        self.mode = mode
        self.scheduler = Scheduler(self.random)
        self.faults = Faults(self.scheduler, self.random, Weather.drawn(self.random))
        self.tokens = 0
        outside = ProcessClock(self.scheduler, Process("outside"))
        self.history = History(outside)
        cache = {"normal": MemoryCache, "always-granted": AlwaysGranted, "redis-gone": NoLeases}[mode]
        self.cache = cache(outside)
        self.provider = Provider()
        self.telemetry = Silent()
        self.queue = SimQueue(
            self.scheduler,
            self.random,
            visibility=SIM_WORKER.visibility_timeout.total_seconds(),
            max_receives=SIM_WORKER.max_receive_count,
        )
        self.relayed: set[str] = set()
        self.bodies: list[str] = []
        self.amounts: dict[str, dict[str, int]] = {}

    def run(self) -> None:
        """Faults for a while, then none, until all is at rest."""
        self._produce()
        for number in range(3):
            self._spawn(f"poller-{number}", self._poll)
        self._spawn("relay", self._relay)
        for number in range(2):
            self._spawn(f"reader-{number}", self._read)
        if self.faults.weather.amnesia:
            self._spawn("amnesia", self._forget)
        try:
            self.scheduler.run(lambda: self.scheduler.now > FAULTY_SECONDS, FAULTY_SECONDS + 1)
            self.faults.heal()
            self.scheduler.run(self.is_at_rest, REST_SECONDS)
        finally:
            self.scheduler.stop()

    def is_at_rest(self) -> bool:
        """Whether nothing is left to do."""
        return not self.queue.messages and set(self.history.outbox) <= self.relayed

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
                self._send("capture-payment", f"{order}/{key}", {"order_id": order, "payment_intent_id": intent})
        for number in range(self.random.randint(1, 4)):
            account, amount = f"account-{number % 2}", self.random.randint(1, 9)
            key = f"add-{number}"
            self.amounts.setdefault(account, {})[key] = amount
            self._send("add", key, {"account": account, "amount": amount})
        self._send("capture-payment", "hopeless", {"order_id": "absent", "payment_intent_id": "pi"})

    def _send(self, job_type: str, key: str, payload: dict[str, Any]) -> None:
        body = json.dumps({"job_type": job_type, "idempotency_key": key, "payload": payload})
        self.bodies.append(body)
        for _ in range(self.random.randint(1, 3)):
            self.queue.put(body, delay=self.random.uniform(0, 30))

    # Who works.

    def _spawn(self, name: str, body: Any) -> None:
        process = Process(name)
        self.scheduler.spawn(name, process, lambda: body(process))

    def _poll(self, here: Process) -> None:
        """Lambda's event source mapping: gives batches to a process, and a new one to the next when it dies."""
        _ = here
        process: Process | None = None
        while True:
            self.scheduler.sleep(self.random.uniform(0.1, 2.0))
            if not self.queue.has_visible:
                continue
            batch = self.queue.receive(BATCH, duplicate=self.faults.happens("duplicate"))
            if process is None or process.is_dead:
                skew = self.faults.weather.skew
                offset = timedelta(seconds=self.random.uniform(-skew, skew))
                process = Process(f"worker-{self.token()[-4:]}", offset)
            self._invoke(process, batch)

    def _invoke(self, process: Process, batch: list[Delivery]) -> None:
        runtime = self._runtime(process)
        ends = self.scheduler.now + SIM_WORKER.function_timeout.total_seconds()
        done: dict[str, bool] = {}
        for delivery in batch:
            self.scheduler.spawn(
                f"job-{delivery.message_id}",
                process,
                lambda d=delivery: done.update({d.receipt_handle: self._run(runtime, d)}),  # type: ignore[misc]
            )
        renewing = self.scheduler.spawn("renewal", process, lambda: self._renew(runtime, done, len(batch)))
        while len(done) < len(batch) and not process.is_dead:
            self.scheduler.sleep(0.2)
            if self.scheduler.now >= ends:
                self.scheduler.kill(process)  # Lambda ends what runs over its timeout
        del renewing
        if process.is_dead:
            return
        for delivery in batch:
            if done[delivery.receipt_handle] and not self.faults.happens("undeleted"):
                self.queue.delete(delivery)

    def _run(self, runtime: Runtime, delivery: Delivery) -> bool:
        until = runtime.clock.now() + SIM_WORKER.function_timeout
        outcome = runtime.execution.execute(delivery, until)
        acknowledged = runtime.settlement.settle(delivery, outcome)
        if acknowledged and isinstance(outcome, Completed | Duplicate):
            self.history.ended(delivery)
        return acknowledged

    def _renew(self, runtime: Runtime, done: dict[str, bool], number: int) -> None:
        while len(done) < number:
            wait = runtime.leases.renew_due()
            self.scheduler.sleep(min(max(wait, 0.05), 1.0))

    def _runtime(self, process: Process) -> Runtime:
        gone = Unavailable("no answer", dependency="aws")
        database = Faulty(self.history, process, self.faults, gone)
        return assemble(
            SIM_WORKER,
            records=database,
            items=database,
            outbox=database,
            leases=Faulty(self.cache, process, self.faults, CacheUnavailable()),
            queue=Faulty(self.queue, process, self.faults, gone),
            transport=Faulty(
                self.provider, process, self.faults, Ambiguous("no answer", dependency="payment-provider")
            ),
            telemetry=self.telemetry,
            clock=ProcessClock(self.scheduler, process),
            random=self.random,
            tokens=self.token,
        )

    def _relay(self, here: Process) -> None:
        """The stream: gives each outbox item to the relay until one goes through."""
        while True:
            self.scheduler.sleep(self.random.uniform(0.2, 3.0))
            fresh = [posting for name, posting in self.history.outbox.items() if name not in self.relayed]
            if not fresh:
                continue
            gone = Unavailable("no answer", dependency="aws")
            process = Process(here.name)
            queue = Faulty(self.queue, process, self.faults, gone)
            relay = Relay(
                Faulty(self.history, process, self.faults, gone),
                lambda worker, queue=queue: queue,  # type: ignore[misc]
                ProcessClock(self.scheduler, process),
                self.random,
                self.telemetry,
            )
            ended: list[bool] = []

            def go(relay: Relay = relay, fresh: list[Any] = fresh, ended: list[bool] = ended) -> None:
                try:
                    relay.relay(fresh)
                except Unavailable:
                    ended.append(False)
                else:
                    ended.append(True)

            self.scheduler.spawn("relay-run", process, go)
            while not ended and not process.is_dead:
                self.scheduler.sleep(0.2)
            if ended and ended[0]:
                self.relayed |= {posting.id for posting in fresh}

    def _read(self, here: Process) -> None:
        """Reads orders through the cache, as a front door would."""
        entries = Faulty(
            self.cache, here, Faults(self.scheduler, self.random, Weather(), healed=True), CacheUnavailable()
        )
        cache = Cache(entries, self.token, timedelta(hours=12))
        orders = [key for table, key in self.history.items if table == "orders"]
        while True:
            self.scheduler.sleep(self.random.uniform(0.5, 10.0))
            key = self.random.choice(orders)

            def load(key: tuple[str, ...] = key) -> str:
                stored = self.history.read(ORDERS, key)
                assert stored is not None
                self.scheduler.sleep(self.random.choice((0.01, 0.01, 40.0)))  # slow readers bring old values back
                return json.dumps(stored.attributes["status"])

            begun = self.scheduler.now
            status = json.loads(cache.read(f"order/{key[0]}", "status", load))
            self.history.saw(key[0], status, begun)

    def _forget(self, here: Process) -> None:
        """Redis loses everything, now and then."""
        _ = here
        while not self.faults.healed:
            self.scheduler.sleep(self.random.uniform(1, 300))
            self.faults.fired["amnesia"] += 1
            self.cache.leases.clear()
            self.cache.entries.clear()
            self.cache.refills.clear()
