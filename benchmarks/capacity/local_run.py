"""Loads on the local stack, open loop, and what they showed."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from datetime import datetime
from random import Random
from statistics import fmean
from typing import TYPE_CHECKING, Any

from benchmarks.capacity.arrivals import poisson
from benchmarks.capacity.local_consumer import CONSUMERS, IDLE, WORKER
from benchmarks.capacity.local_stack import consuming
from benchmarks.capacity.seen import Timing
from tests.stack import new_stack
from tests.world import body

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.capacity.local_stack import Surroundings
    from tests.stack import Stack

PACE = 0.5  # of declared durations, so that a call that hangs is over soon
WARM = 4 * CONSUMERS  # jobs that open all connections
LATEST = 1.0  # seconds that the sender may be behind
LOOKS = 4.0  # seconds between two looks whether all has ended
PATIENCE = 60.0  # seconds for what still waits after a load


@dataclass(frozen=True, slots=True)
class Job:
    """One job of a load, in seconds from its beginning: when it was due, when its invocation began and it was committed."""

    due: float
    began: float
    ended: float


@dataclass(frozen=True, slots=True)
class Batch:
    """One invocation of a load.

    Attributes:
        size: its jobs.
        received: seconds that its receipt took.
        rest: seconds from its last job's commit to its end.
        deleted: seconds in which its messages were deleted.
    """

    size: int
    received: float
    rest: float
    deleted: float


@dataclass(frozen=True, slots=True)
class Run:
    """What a load showed.

    Attributes:
        rate: jobs a second that were asked for.
        seconds: for how long.
        jobs: in the order in which they were due.
        send: mean seconds from when a job was due until its message was sent.
        batches: of all consumers.
    """

    rate: float
    seconds: float
    jobs: tuple[Job, ...]
    send: float
    batches: tuple[Batch, ...]

    @property
    def service(self) -> list[float]:
        """Seconds from the start of its invocation to each job's commit."""
        return [job.ended - job.began for job in self.jobs]

    @property
    def timing(self) -> Timing:
        """What an invocation costs here beside its jobs."""
        received = fmean(batch.received for batch in self.batches)
        return Timing(
            poll=received,
            idle=IDLE + received,
            rest=max(fmean(batch.rest for batch in self.batches), 0),
            each=sum(batch.deleted for batch in self.batches) / len(self.jobs),
            cold=0,
        )


class LoadError(Exception):
    """A load that says nothing of the model: run it again on a machine that is less busy."""


def moments_of(rate: float, seconds: float, seed: int) -> list[float]:
    """When the jobs of a load are due: the model is given the same moments."""
    return list(poisson(rate, seconds, Random(seed)))  # noqa: S311 - repeatable


def run_load(
    here: Surroundings, rate: float, seconds: float, seed: int, tell: Callable[[float], None] = lambda _: None
) -> Run:
    """Send jobs open loop to a stack of their own, wait until all have ended, and tell what happened.

    Raises:
        LoadError: this run says nothing.
    """
    stack = new_stack(here.valkey, here.provider, worker=WORKER)
    folder = here.folder / f"load-{seed}"
    folder.mkdir()
    with consuming(replace(stack.settings, pace=PACE), folder) as notes:
        warm = [f"warm-{number}" for number in range(WARM)]
        _seed(stack, warm)
        for name in warm:
            _send(stack, name)
        _ends(stack, warm)
        moments = moments_of(rate, seconds, seed)
        names = [f"job-{number}" for number in range(len(moments))]
        _seed(stack, names)
        start = time.time() + 0.5
        sends = [_send_at(stack, name, start + moment, tell) for moment, name in zip(moments, names, strict=True)]
        ends = _ends(stack, names)
    noted = [json.loads(line) for file in notes for line in file.read_text(encoding="utf-8").splitlines()]
    noted = [batch for batch in noted if batch["keys"][0] in ends]
    began = {key: batch["began"] for batch in noted for key in batch["keys"]}
    return Run(
        rate,
        seconds,
        tuple(Job(due, began[name] - start, ends[name] - start) for due, name in zip(moments, names, strict=True)),
        fmean(sends),
        tuple(_batch(batch, ends) for batch in noted),
    )


def _batch(noted: dict[str, Any], ends: dict[str, float]) -> Batch:
    last = max(ends[key] for key in noted["keys"])
    return Batch(len(noted["keys"]), noted["received"], noted["ended"] - last, noted["deleted"] - noted["ended"])


def _seed(stack: Stack, names: Sequence[str]) -> None:
    for name in names:
        stack.seed(order_id=name, payment_intent_id=f"pi_ok_{name}")


def _send(stack: Stack, name: str) -> None:
    payload = {"order_id": name, "payment_intent_id": f"pi_ok_{name}"}
    stack.send(body(job_type="capture-payment", idempotency_key=name, payload=payload))


def _send_at(stack: Stack, name: str, moment: float, tell: Callable[[float], None]) -> float:
    """Send a job when it is due, whatever became of the others; give the seconds until it was sent."""
    time.sleep(max(0.0, moment - time.time()))
    late = time.time() - moment
    if late > LATEST:
        message = f"the sender is {late:.2f} s behind: this machine is too busy."
        raise LoadError(message)
    _send(stack, name)
    tell(moment)
    return time.time() - moment


def _ends(stack: Stack, names: Sequence[str]) -> dict[str, float]:
    """When each job was committed, in seconds of the wall clock, once all are. Asking is dear here, so it is done seldom."""
    deadline = time.monotonic() + PATIENCE
    ended: dict[str, dict[str, Any]] = {}
    while len(ended) < len(names):
        if time.monotonic() > deadline:
            message = f"{len(names) - len(ended)} of {len(names)} jobs did not end within {PATIENCE:.0f} s."
            raise LoadError(message)
        time.sleep(LOOKS)
        items = {item["idempotency_key"]["S"]: item for item in _scan(stack)}
        ended = {name: items[name] for name in names if items.get(name, {}).get("status") == {"S": "completed"}}
    again = sum(item["attempts"]["N"] != "1" for item in ended.values())
    if again:
        message = f"{again} jobs needed more than one attempt."
        raise LoadError(message)
    return {name: datetime.fromisoformat(item["ended_at"]["S"]).timestamp() for name, item in ended.items()}


def _scan(stack: Stack) -> list[dict[str, Any]]:
    pages = stack.database.client.get_paginator("scan").paginate(TableName=stack.settings.jobs_table)
    return [item for page in pages for item in page["Items"]]
