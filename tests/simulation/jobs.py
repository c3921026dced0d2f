"""The jobs of a simulated worker, and the outside systems that they call."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from functions.outside.payment_provider import PAYMENT_PROVIDER
from functions.payments import WORKER
from shared.dependency import Dependency, Reply
from shared.errors import DeadLetter, RetryLater
from shared.job import Unique, job
from shared.payload import Payload
from shared.retry import Retry
from shared.table import Table
from shared.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable

    from shared.unit_of_work import UnitOfWork

ACCOUNTS = Table("accounts", key="id")
PLANTS = Table("plants", key="id")
PAGES = Table("pages", key="id")
LINES = Table("lines", key="id")
BASKETS = Table("baskets", key="id")
ROTTEN = 5  # every so many-th row
GATE = Dependency("gate", timeout=timedelta(seconds=5))
BATCH = 3
DAY = 7.0  # seconds
THOUGHT = 0.5


class Echo(Payload):
    """Say that something was added."""

    account: str


@job(
    "echo",
    timeout=timedelta(seconds=20),
    max_latency=timedelta(minutes=5),
    retry=Retry(max_attempts=6, base=timedelta(seconds=5), cap=timedelta(minutes=2)),
)
def echo(payload: Echo, work: UnitOfWork) -> str:
    """Follows from each addition that is committed, and from no other."""
    work.invalidate(f"account/{payload.account}")
    return payload.account


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
    work.clock.sleep(THOUGHT)  # in which others read the same
    work.invalidate(f"account/{payload.account}")
    work.enqueue(echo.message(Echo(account=payload.account), f"{payload.account}/{work.idempotency_key}"))
    if account is None:
        work.create(ACCOUNTS, id=payload.account, total=payload.amount)
        return payload.amount
    total = account["total"]
    assert isinstance(total, int)
    work.update(account, total=total + payload.amount)
    return total + payload.amount


class Grow(Payload):
    """Let a plant grow for some days."""

    plant: str
    days: int


@job(
    "grow",
    timeout=timedelta(seconds=40),
    max_latency=timedelta(minutes=30),
    heartbeat=timedelta(seconds=4),
    retry=Retry(max_attempts=7, base=timedelta(seconds=5), cap=timedelta(minutes=2)),
    lock=lambda payload: f"plant/{payload.plant}",
    uses=(PLANTS.read_write, GATE),
)
def grow(payload: Grow, work: UnitOfWork) -> int:
    """Long, with a heartbeat, under a fencing number that an outside gate checks."""
    number = work.fencing_number()
    for _ in range(payload.days):
        work.clock.sleep(DAY)
        if work.call(GATE, "PUT", f"/{payload.plant}", body={"number": number}).status != 200:
            message = "another attempt is further"
            raise RetryLater(message)
    plant = work.read(PLANTS, payload.plant)
    work.invalidate(f"plant/{payload.plant}")
    if plant is None:
        work.create(PLANTS, id=payload.plant, height=payload.days)
        return payload.days
    height = plant["height"]
    assert isinstance(height, int)
    work.update(plant, height=height + payload.days)
    return height + payload.days


class Refresh(Payload):
    """Refresh a page."""

    page: str


@job(
    "refresh",
    timeout=timedelta(seconds=20),
    max_latency=timedelta(minutes=5),
    retry=Retry(max_attempts=6, base=timedelta(seconds=5), cap=timedelta(minutes=2)),
    uses=(PAGES.read_write,),
    unique=Unique.WHILE_ACTIVE,
)
def refresh(payload: Refresh, work: UnitOfWork) -> None:
    """Again and again under one key, never two at once."""
    page = work.read(PAGES, payload.page)
    work.clock.sleep(THOUGHT)
    if page is None:
        work.create(PAGES, id=payload.page)
    else:
        work.update(page, by=work.token)


class Told(Payload):
    """Hear of a step of a line."""

    line: str
    number: int


@job(
    "told",
    timeout=timedelta(seconds=20),
    max_latency=timedelta(minutes=5),
    retry=Retry(max_attempts=6, base=timedelta(seconds=5), cap=timedelta(minutes=2)),
)
def told(payload: Told, work: UnitOfWork) -> int:
    """Follows from each step."""
    del work
    return payload.number


class Move(Payload):
    """Let a line make two steps."""

    line: str


@job(
    "move",
    timeout=timedelta(seconds=20),
    max_latency=timedelta(minutes=5),
    retry=Retry(max_attempts=6, base=timedelta(seconds=5), cap=timedelta(minutes=2)),
    uses=(LINES.read_write,),
)
def move(payload: Move, work: UnitOfWork) -> None:
    """Tells of its steps in order, also behind those of other moves of its line."""
    line = work.read(LINES, payload.line)
    work.clock.sleep(THOUGHT)
    steps = 0 if line is None else line["steps"]
    assert isinstance(steps, int)
    if line is None:
        work.create(LINES, id=payload.line, steps=2)
    else:
        work.update(line, steps=steps + 2)
    for number in (steps + 1, steps + 2):
        message = told.message(Told(line=payload.line, number=number), f"{payload.line}/{number}")
        work.enqueue(message, group=payload.line, ordered=True)


class Pick(Payload):
    """Pick a row of a field."""

    field: str
    row: int


@job(
    "pick",
    timeout=timedelta(seconds=20),
    max_latency=timedelta(minutes=5),
    retry=Retry(max_attempts=6, base=timedelta(seconds=5), cap=timedelta(minutes=2)),
    uses=(BASKETS.read_write,),
)
def pick(payload: Pick, work: UnitOfWork) -> None:
    """A part in two steps; some rows are rotten."""
    name = f"{payload.field}/{payload.row}"
    if work.last_checkpoint is None:
        work.clock.sleep(THOUGHT)
        work.create(BASKETS, id=f"{name}/half")
        work.checkpoint({"half": True}, needs=timedelta(seconds=1))
    if payload.row % ROTTEN == 0:
        reason = "rotten"
        raise DeadLetter(reason)
    work.clock.sleep(THOUGHT)
    work.create(BASKETS, id=name)


class Harvest(Payload):
    """Harvest a field, row by row."""

    field: str
    rows: int


@job(
    "harvest",
    timeout=timedelta(seconds=20),
    max_latency=timedelta(minutes=30),
    retry=Retry(max_attempts=8, base=timedelta(seconds=5), cap=timedelta(minutes=2)),
    parts=(pick,),
    uses=(BASKETS.read_write,),
)
def harvest(payload: Harvest, work: UnitOfWork) -> dict[str, int]:
    """Split into rows, two at a time, each step with an effect of its own; then it goes on, once, after the last."""
    done = 0 if work.last_checkpoint is None else int(work.last_checkpoint["rows"])
    while done < payload.rows:
        work.create(BASKETS, id=f"{payload.field}/step/{done}")
        after = min(done + 2, payload.rows)
        for row in range(done + 1, after + 1):
            work.split(pick, Pick(field=payload.field, row=row))
        done = after
        work.progress(done, payload.rows, "rows")
        work.checkpoint({"rows": done}, needs=timedelta(seconds=1))
        work.clock.sleep(THOUGHT)
    tally = work.await_parts()
    work.create(BASKETS, id=f"{payload.field}/all")
    return {"ended": tally.ended, "succeeded": tally.succeeded}


class Impatient(Worker):
    """A queue that takes messages away after few receives, so that sending anew is simulated, too."""

    __slots__ = ()

    @property
    def max_receive_count(self) -> int:
        return 12


SIM_WORKER = Impatient(
    WORKER.name,
    jobs=(*WORKER.jobs, add, echo, grow, refresh, told, move, harvest, pick),
    batch_size=BATCH,
    max_concurrency=WORKER.max_concurrency,
)


@dataclass
class Outside:
    """The payment provider, which charges once for a key, and the gate, which lets no lower number through than before."""

    check_up: Callable[[], None] = lambda: None
    charges: Counter[str] = field(default_factory=Counter)
    known: dict[str, dict[str, Any]] = field(default_factory=dict)
    passed: dict[str, list[int]] = field(default_factory=dict)

    def send(self, dependency: Any, method: str, path: str, *, body: Any, headers: Any, within: Any) -> Reply:
        if dependency.name == PAYMENT_PROVIDER.name:
            self.check_up()
            return self._provide(method, path, body, headers)
        passed = self.passed.setdefault(path, [])
        if passed and body["number"] < passed[-1]:
            return Reply(409, None)
        passed.append(body["number"])
        return Reply(200, None)

    def _provide(self, method: str, path: str, body: Any, headers: Any) -> Reply:
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
