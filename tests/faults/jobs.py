"""The worker whose processes are killed: payments, and a long job with a heartbeat and a fencing number."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from functions import imports, payments
from shared.dependency import Dependency, Keys
from shared.job import job
from shared.payload import Payload
from shared.retry import Retry
from shared.table import Table
from shared.worker import Worker

if TYPE_CHECKING:
    from shared.unit_of_work import UnitOfWork

BREWS = Table("brews", key="id")
BARRELS = Table("barrels", key="id")
CASKS = Table("casks", key="id")
STEPS = 5
STEP = timedelta(seconds=4)  # at the pace of 1


class Brew(Payload):
    """Brew something."""

    pot: str


@job(
    "brew",
    timeout=timedelta(seconds=90),
    max_latency=timedelta(minutes=10),
    heartbeat=timedelta(seconds=10),
    retry=Retry(max_attempts=5, base=timedelta(seconds=10), cap=timedelta(seconds=20)),
    lock=lambda payload: f"pot/{payload.pot}",
    uses=(BREWS.read_write,),
)
def brew(payload: Brew, work: UnitOfWork) -> dict[str, int]:
    """Count how often the pot was brewed, slowly."""
    number = work.fencing_number()
    pot = work.read(BREWS, payload.pot)
    for _ in range(STEPS):
        work.clock.sleep(STEP.total_seconds() * PACE)
        work.check()
    times = 0 if pot is None else pot["times"]
    assert isinstance(times, int)
    if pot is None:
        work.create(BREWS, id=payload.pot, times=1)
    else:
        work.update(pot, times=times + 1)
    work.invalidate(f"pot/{payload.pot}")
    return {"number": number}


class Age(Payload):
    """Age something."""

    cask: str


YEARS = 3


@job(
    "age",
    timeout=timedelta(seconds=60),
    max_latency=timedelta(minutes=10),
    heartbeat=timedelta(seconds=10),
    retry=Retry(max_attempts=5, base=timedelta(seconds=10), cap=timedelta(seconds=20)),
    lock=lambda payload: f"cask/{payload.cask}",
    uses=(CASKS.read_write,),
)
def age(payload: Age, work: UnitOfWork) -> dict[str, int]:
    """A year is a step, and none is lived twice."""
    begun = 0 if work.last_checkpoint is None else int(work.last_checkpoint["years"])
    for year in range(begun, YEARS):
        work.create(CASKS, id=f"{payload.cask}/{year}")
        work.invalidate(f"cask/{payload.cask}/{year}")
        work.progress(year + 1, YEARS, "years")
        work.checkpoint({"years": year + 1})
    return {"begun": begun}


class Crush(Payload):
    """Crush a share of the grapes."""

    press: str
    share: int


@job("crush", timeout=timedelta(seconds=20), max_latency=timedelta(minutes=10), uses=(CASKS.read_write,))
def crush(payload: Crush, work: UnitOfWork) -> None:
    """A part."""
    work.create(CASKS, id=f"{payload.press}/{payload.share}")


class Press(Payload):
    """Press grapes in shares."""

    press: str


SHARES = 3


@job(
    "press",
    timeout=timedelta(seconds=20),
    max_latency=timedelta(minutes=10),
    parts=(crush,),
    retry=Retry(max_attempts=5, base=timedelta(seconds=10), cap=timedelta(seconds=20)),
    uses=(CASKS.read_write,),
)
def press(payload: Press, work: UnitOfWork) -> dict[str, int]:
    """Goes on when all shares are crushed."""
    if work.last_checkpoint is None:
        for share in range(SHARES):
            work.split(crush, Crush(press=payload.press, share=share))
        work.checkpoint({}, needs=timedelta(0))
    tally = work.await_parts()
    work.create(CASKS, id=f"{payload.press}/all")
    return {"succeeded": tally.succeeded}


class Pour(Payload):
    """Pour some litres into a barrel."""

    barrel: str
    litres: int


@job(
    "pour",
    timeout=timedelta(seconds=20),
    max_latency=timedelta(minutes=10),
    retry=Retry(max_attempts=3, base=timedelta(seconds=3), cap=timedelta(seconds=20)),
    uses=(BARRELS.read_write,),
)
def pour(payload: Pour, work: UnitOfWork) -> None:
    """Without a lock: only the commit's conditions keep two apart."""
    barrel = work.read(BARRELS, payload.barrel)
    if barrel is None:
        work.create(BARRELS, id=payload.barrel, litres=payload.litres)
        return
    litres = barrel["litres"]
    assert isinstance(litres, int)
    work.update(barrel, litres=litres + payload.litres)


# The payment provider, for a job that does not trust its keys.
BLIND = Dependency("blind-provider", timeout=timedelta(seconds=5), keys=Keys.NOT_TAKEN)


class ChargeBlind(Payload):
    """Charge something."""

    order: str
    intent: str


@job("charge-blind", timeout=timedelta(seconds=20), max_latency=timedelta(minutes=10), uses=(BLIND,))
def charge_blind(payload: ChargeBlind, work: UnitOfWork) -> None:
    """Never twice by itself, not even where nobody knows of the first time."""
    body = {"amount": "1", "currency": "EUR", "payment_intent_id": payload.intent, "order_id": payload.order}
    work.call(BLIND, "POST", "/v1/charges", body=body, headers={"Idempotency-Key": payload.intent})


class Impatient(Worker):
    """A queue that takes messages away early, so that they are sent anew early."""

    __slots__ = ()

    @property
    def max_receive_count(self) -> int:
        return 5


PACE = 0.1
CRASHING = Worker("payments", jobs=(*payments.WORKER.jobs, brew, age, press, crush, pour, charge_blind), batch_size=3)
IMPATIENT = Impatient("payments", jobs=payments.WORKER.jobs, batch_size=3)
# moto copies a table for each transaction, one after the other.
TWO_AT_A_TIME = replace(imports.WORKER, batch_size=2)
WORKERS = {"crashing": CRASHING, "impatient": IMPATIENT, "imports": TWO_AT_A_TIME}
