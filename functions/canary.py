"""The canary: a round a minute through the whole deployed stack, and the probes of `tahan smoke`. They touch nothing of anybody's.

A round is posted by the sweeper, sent by the relay, done here with a lease, a transaction and an invalidation; an alarm watches
how long that takes, and rings when none ends at all.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, Field

from shared.consumer import consume
from shared.errors import DeadLetter, RetryLater
from shared.job import job
from shared.outcome import Failed
from shared.payload import Payload
from shared.retry import Retry
from shared.table import Table
from shared.worker import Worker

if TYPE_CHECKING:
    from shared.unit_of_work import UnitOfWork

CANARIES = Table("canaries", key="canary")
ROUND = "round"
ASKED_FOR = "asked-for"


class Round(Payload):
    """Nothing: a round is a round."""


class Probe(Payload):
    """End in this way; the effects of a smoke run are counted apart from those of the runs before."""

    run: Annotated[str, Field(pattern=r"^[a-z0-9]{1,40}$")]
    ends: Literal["completed", "retried", "failed", "dead-lettered"]


class Sung(BaseModel):
    """How many rounds, or effects of one probe, there have been."""

    canary: str
    count: int


@job(
    "canary-round",
    timeout=timedelta(seconds=10),
    max_latency=timedelta(minutes=1),
    retry=Retry(max_attempts=3, base=timedelta(seconds=5), cap=timedelta(seconds=10)),
    lock=lambda _payload: f"canary/{ROUND}",
    uses=(CANARIES.read_write,),
    cron="* * * * *",
)
def canary_round(payload: Round, work: UnitOfWork) -> Sung:
    """Count a round."""
    del payload
    return _counted(ROUND, ROUND, work)


@job(
    "smoke-probe",
    timeout=timedelta(seconds=10),
    max_latency=timedelta(minutes=1),
    retry=Retry(max_attempts=3, base=timedelta(seconds=1), cap=timedelta(seconds=5)),
    lock=lambda payload: f"canary/{payload.ends}",
    uses=(CANARIES.read_write,),
)
def smoke_probe(payload: Probe, work: UnitOfWork) -> Sung | Failed:
    """End as the probe asks for; what ends well counts one effect."""
    if payload.ends == "dead-lettered":
        raise DeadLetter(ASKED_FOR)
    if payload.ends == "failed":
        return Failed("asked_for", "the probe asked for it")
    if payload.ends == "retried" and work.attempt == 1:
        message = "the probe asked for it"
        raise RetryLater(message)
    return _counted(payload.ends, payload.run, work)


def _counted(canary: str, run: str, work: UnitOfWork) -> Sung:
    """Count one more of a run, in one item for all runs of a kind: they leave nothing behind that grows."""
    item = work.read(CANARIES, canary)
    count = 1
    if item is None:
        work.create(CANARIES, canary=canary, run=run, count=count)
    else:
        count += int(str(item["count"])) if item["run"] == run else 0
        work.update(item, run=run, count=count)
    work.invalidate(f"canary/{canary}")
    return Sung(canary=canary, count=count)


WORKER = Worker("canary", jobs=(canary_round, smoke_probe), max_concurrency=2, memory=256)
handler = consume(WORKER)
