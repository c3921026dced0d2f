"""A drill in virtual time: the payment provider is down for half an hour under steady load, and deploys happen in between.

The product's own consumer, gates, queue brake and watchdog work over the memory twins; nothing else goes wrong.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from functions.outside.payment_provider import PAYMENT_PROVIDER
from functions.payments import WORKER
from shared.backends.memory.brakes import MemoryBrakes, MemoryMappings
from shared.backends.memory.cache import MemoryCache
from shared.backends.memory.database import MemoryDatabase
from shared.backends.memory.gates import MemoryGates
from shared.backends.memory.queue import MemoryQueue
from shared.delivery import read_event
from shared.dependency import Reply
from shared.errors import CacheUnavailable, Unavailable
from shared.item import Stored
from shared.job_record import Status
from shared.producer import Outgoing
from shared.rounds.brake_rounds import Controller, Watchdog
from shared.rounds.relay import Relay
from shared.runtime import assemble
from shared.telemetry import Silent
from tests.simulation.faults import Faults, Faulty, Weather
from tests.simulation.scheduler import Process, ProcessClock, Scheduler

if TYPE_CHECKING:
    from collections.abc import Callable

    from shared.delivery import Delivery
    from shared.pipeline.preparation import Prepared
    from shared.runtime import Runtime

POLLERS = 12
BEFORE, AFTER = 300.0, 300.0  # seconds of steady load around the outage
DEPLOY_EVERY = 420.0
LONGEST_DRAIN = 4 * 3600.0
PATIENCE = 5.0  # of a process for what it runs, when it is told to end


@dataclass(frozen=True, slots=True)
class Report:
    """How the drill ended.

    Attributes:
        jobs: asked for, each once.
        completed: of them, each with its one charge.
        attempts: how many jobs ended after how many attempts.
        dead_letters: messages in the dead-letter queue.
        calls_while_down: that the provider refused.
        busiest: most calls in one second after it came back.
        declared: calls in one second that the dependency allows: its rate and its burst.
        drained_after: seconds from the end of the outage until the last job that had waited was done.
        paused: seconds for which the queue stood still.
        receives: the most of one message.
        deploys: how often every process was replaced.
        invocations: batches run while the provider was down.
    """

    jobs: int
    completed: int
    charged_twice: int
    attempts: dict[int, int]
    dead_letters: int
    calls_while_down: int
    busiest: int
    declared: float
    drained_after: float
    paused: float
    receives: int
    deploys: int
    invocations: int

    @property
    def problems(self) -> list[str]:
        """What must not be."""
        wrong = {
            "jobs that did not complete": self.jobs - self.completed,
            "orders charged twice": self.charged_twice,
            "dead letters": self.dead_letters,
            "jobs that spent an attempt": sum(number for spent, number in self.attempts.items() if spent != 1),
            "calls above the declared rate in one second": max(0, self.busiest - round(self.declared)),
        }
        return [f"{what}: {number}" for what, number in wrong.items() if number]


def outage(out: Console) -> None:
    """Half an hour without the provider.

    Raises:
        AssertionError: something is there that must not be.
    """
    columns = (TextColumn("outage of 30 min"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("outage", total=1.0)
        report = Drill(30, 4).run(lambda share: progress.update(bar, completed=share))
    table = Table("half an hour without the provider, 4 jobs a second", "")
    for name, value in asdict(report).items():
        shown = f"{value:.0f} s" if name in {"drained_after", "paused"} else str(value)
        table.add_row(name.replace("_", " "), shown)
    out.print(table)
    assert not report.problems, report.problems


@dataclass
class Provider:
    """Charges, unless it is down."""

    scheduler: Scheduler
    random: Random
    down: tuple[float, float]
    begun: list[float] = field(default_factory=list)
    refused: int = 0
    charges: Counter[str] = field(default_factory=Counter)

    def send(self, dependency: Any, method: str, path: str, *, body: Any, **_: Any) -> Reply:
        del method, path
        self.begun.append(self.scheduler.now)
        if self.down[0] <= self.scheduler.now < self.down[1]:
            self.refused += 1
            self.scheduler.sleep(0.01)
            message = "the provider cannot be reached"
            raise Unavailable(message, dependency=dependency.name)
        self.scheduler.sleep(self.random.uniform(0.1, 0.4))
        intent = body["payment_intent_id"]
        self.charges[intent] += 1
        asked = {name: body[name] for name in ("payment_intent_id", "amount", "currency")}
        return Reply(201, {"charge_id": f"ch-{intent}", **asked})


class Drill:
    """One drill, from its seed."""

    def __init__(self, minutes: float, per_second: float, seed: int = 1) -> None:
        self.random = Random(seed)  # noqa: S311 - repeatable
        self.per_second = per_second
        self.down = (BEFORE, BEFORE + minutes * 60)
        self.ends = self.down[1] + AFTER
        self.scheduler = Scheduler(self.random)
        self.faults = Faults(self.scheduler, self.random, Weather(), healed=True)
        clock = ProcessClock(self.scheduler, Process("outside"))
        self.clock = clock
        self.database = MemoryDatabase(clock)
        self.queue = MemoryQueue(clock, WORKER.visibility_timeout, WORKER.max_receive_count)
        self.cache, self.gates = MemoryCache(clock), MemoryGates(clock)
        self.brakes, self.mappings = MemoryBrakes(), MemoryMappings()
        self.telemetry = Silent()
        self.provider = Provider(self.scheduler, self.random, self.down)
        self.tokens = 0
        self.sent = 0
        self.streamed: set[str] = set()
        self.done_at: dict[str, float] = {}
        self.paused = 0.0
        self.deploys = self.invocations = self.receives = 0
        self.runtimes: list[Runtime] = []

    def run(self, tell: Callable[[float], None] = lambda _: None) -> Report:
        """Play it to the end; `tell` hears the share that is over."""
        self._spawn("producer", self._produce)
        self._spawn("relay", self._relay)
        self._spawn("controller", self._control)
        self._spawn("deploys", self._deploy)
        for number in range(POLLERS):
            self._spawn(f"poller-{number}", partial(self._poll, number))
        try:
            while self.scheduler.now < self.ends:
                self.scheduler.run(partial(self._is_past, self.scheduler.now + 60), 3600)
                tell(min(1.0, self.scheduler.now / self.ends))
            self.scheduler.run(self._is_at_rest, LONGEST_DRAIN)
        finally:
            self.scheduler.stop()
        return self._report()

    def _report(self) -> Report:
        views = list(self.database.records.values())
        done = [view for view in views if view.status is Status.COMPLETED]
        back = [int(moment) for moment in self.provider.begun if moment >= self.down[1]]
        rate = PAYMENT_PROVIDER.rate
        waited = [moment for intent, moment in self.done_at.items() if float(intent.split("@")[1]) < self.down[1]]
        return Report(
            jobs=self.sent,
            completed=len(done),
            charged_twice=sum(number > 1 for number in self.provider.charges.values()),
            attempts=dict(Counter(view.attempts for view in views)),
            dead_letters=len(self.queue.dead),
            calls_while_down=self.provider.refused,
            busiest=max(Counter(back).values(), default=0),
            declared=0 if rate is None else rate.per_second + rate.burst,
            drained_after=max(waited) - self.down[1],
            paused=self.paused,
            receives=self.receives,
            deploys=self.deploys,
            invocations=self.invocations,
        )

    def _spawn(self, name: str, body: Callable[[], None]) -> None:
        self.scheduler.spawn(name, Process(name), body)

    def _is_past(self, moment: float) -> bool:
        return self.scheduler.now >= moment

    def _is_at_rest(self) -> bool:
        return not self.queue.messages and len(self.done_at) == self.sent

    def _token(self) -> str:
        self.tokens += 1
        return f"{self.tokens:032x}"

    # Who works.

    def _produce(self) -> None:
        """Steady load: an order at a time, each with its capture."""
        while self.scheduler.now < self.ends:
            self.scheduler.sleep(self.random.expovariate(self.per_second))
            self.sent += 1
            intent = f"{self.sent}@{self.scheduler.now:.3f}"
            order = {"order_id": intent, "user_id": "u", "amount": "1", "currency": "EUR", "status": "pending"}
            self.database.items["orders", (intent,)] = Stored({**order, "payment_intent_id": intent}, 1)
            payload = {"order_id": intent, "payment_intent_id": intent}
            message = {"job_type": "capture-payment", "idempotency_key": intent, "payload": payload}
            self.queue.send([Outgoing(json.dumps(message))])

    def _poll(self, number: int) -> None:
        """Lambda's mapping: one batch after another, in a process that is replaced when it is told to end."""
        runtime: Runtime | None = None
        while True:
            running = self.mappings.running.get(WORKER.name)
            if running is not None and number >= running:
                self.scheduler.sleep(5.0)
                self.paused += 0 if number else 5.0
                continue
            records = self.queue.receive(WORKER.batch_size)
            if not records:
                self.scheduler.sleep(self.random.uniform(0.2, 1.0))
                continue
            if runtime is None or runtime.stopping.is_set():
                runtime = self._runtime(Process(f"worker-{self._token()[-6:]}"))
                self.runtimes.append(runtime)
            self._invoke(runtime, list(read_event({"Records": records})))

    def _invoke(self, runtime: Runtime, batch: list[Delivery]) -> None:
        self.invocations += self.provider.down[0] <= self.scheduler.now < self.provider.down[1]
        process: Any = runtime.clock
        until = runtime.clock.now() + WORKER.function_timeout
        done: dict[str, bool] = {}
        prepared = runtime.execution.preparation.together(batch, {each.message_id for each in batch}, until)

        def run(delivery: Delivery, ready: Prepared | None) -> None:
            outcome = runtime.execution.execute(delivery, until, ready)
            done[delivery.receipt_handle] = runtime.settlement.settle(delivery, outcome)

        for delivery in batch:
            self.receives = max(self.receives, delivery.receive_count)
            job = partial(run, delivery, prepared.get(delivery.message_id))
            self.scheduler.spawn("job", process.process, job)
        while len(done) < len(batch):
            self.scheduler.sleep(0.05)
            runtime.keeper.renew_due()
        for delivery in batch:
            if done[delivery.receipt_handle]:
                self.queue.delete(delivery.receipt_handle)
                self.done_at.setdefault(json.loads(delivery.body)["idempotency_key"], self.scheduler.now)

    def _runtime(self, process: Process) -> Runtime:
        def through(store: Any, error: Exception) -> Any:
            return Faulty(store, process, self.faults, error)

        gone = Unavailable("no answer", dependency="aws")
        database = through(self.database, gone)
        return assemble(
            WORKER,
            records=database,
            items=database,
            outbox=database,
            parts=database,
            leases=through(self.cache, CacheUnavailable()),
            gates=through(self.gates, CacheUnavailable()),
            queue=through(self.queue, gone),
            transport=self.provider,
            telemetry=self.telemetry,
            clock=ProcessClock(self.scheduler, process),
            random=self.random,
            tokens=self._token,
        )

    def _relay(self) -> None:
        """What is sent anew goes through the outbox."""
        relay = Relay(self.database, self.database, lambda _: self.queue, self.clock, self.random, self.telemetry)
        while True:
            self.scheduler.sleep(1.0)
            fresh = [posting for name, posting in self.database.outbox.items() if name not in self.streamed]
            relay.relay(fresh)
            self.streamed |= {posting.id for posting in fresh}

    def _control(self) -> None:
        """The schedule: the controller and the watchdog, once a minute."""
        needs: Any = {WORKER.name: [PAYMENT_PROVIDER.gate]}
        controller = Controller(needs, self.gates, self.brakes, self.mappings, self.clock, self.telemetry)
        watchdog = Watchdog((WORKER.name,), self.brakes, self.mappings, self.clock, self.telemetry)
        while True:
            self.scheduler.sleep(60.0)
            controller.make_round()
            watchdog.make_round()

    def _deploy(self) -> None:
        """Every process is told to end, and another takes its place."""
        while True:
            self.scheduler.sleep(DEPLOY_EVERY)
            self.deploys += 1
            for runtime in self.runtimes:
                runtime.stopping.set()
            self.runtimes.clear()
