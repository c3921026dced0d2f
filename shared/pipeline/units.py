"""Puts the unit of work of an attempt together: what a handler is given, out of the claim, the delivery and the worker's stores."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from shared.unit_of_work import UnitOfWork
from shared.work.calls import Calls, Intents
from shared.work.splitting import Splitting
from shared.work.steps import Steps

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from shared.claim import Granted
    from shared.clock import Surroundings
    from shared.dependency import Transport
    from shared.files import FileStore
    from shared.item import ItemStore
    from shared.job_records import JobRecords
    from shared.pipeline.run import Run
    from shared.rounds.counting import Parts
    from shared.tag import Tag
    from shared.unit_of_work import Guard
    from shared.wire.deposits import Deposits
    from shared.work.way import Ways
    from shared.worker import Worker


@dataclass(frozen=True, slots=True)
class Units:
    """Units of work of one worker's jobs.

    Attributes:
        invalidate: drops tags while leases are held; raises CacheUnavailable.
    """

    worker: Worker
    records: JobRecords
    items: ItemStore
    parts: Parts
    transport: Transport
    ways: Ways
    here: Surroundings
    invalidate: Callable[[tuple[Tag, ...]], None]
    files: FileStore | None = None
    deposits: Deposits | None = None

    def of(self, run: Run, granted: Granted, deadline: datetime, guards: tuple[Guard, ...]) -> UnitOfWork:
        """The unit of work of one attempt, which must have returned by the deadline; the guards hold while it works."""
        clock, tokens = self.here.clock, self.here.tokens
        view, hold, message = granted.view, granted.hold, run.message
        splitting = Splitting(self.parts, view, run.job.parts, self.worker.name, tokens, self.deposits)
        return UnitOfWork(
            items=self.items,
            calls=Calls(
                self.transport,
                clock,
                tokens,
                way=self.ways.way(run.job.name, view.last_failure),
                intents=Intents(self.records, hold),
                begun_at=view.stepped_at or view.begun_at,
                trace=run.trace,
            ),
            clock=clock,
            tokens=tokens,
            worker=self.worker.name,
            idempotency_key=message.idempotency_key,
            attempt=granted.attempt,
            token=hold.token,
            deadline=deadline,
            stopping=self.here.stopping,
            steps=Steps(self.records, granted, self.invalidate, deadline, clock, splitting),
            random=self.here.random,
            guards=guards,
            uses=run.job.uses,
            record=message.record,
            trace=run.trace,
            tenant=message.tenant,
            fifo=self.worker.fifo,
            store=self.files,
            deposits=self.deposits,
            fences=partial(self.records.fence, hold, run.locks[0]) if run.locks else None,
        )
