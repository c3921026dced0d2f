"""Declare a worker: some job types that share a queue, a consumer function and its alarms. All its numbers are here.

Infra, the consumer and the local stand-in read the same properties, so that they cannot disagree. AWS's rules:
visibility at least six times the function's timeout plus the batching window; a window of at least a second for
batches over ten; no window and at most ten for FIFO (Lambda developer guide, "Using Lambda with Amazon SQS").
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from shared.declaring.worker_checks import VISIBILITY_FACTOR, check_worker
from shared.errors import DeclarationError
from shared.job import Job, JobTypes
from shared.table import Access, Right

if TYPE_CHECKING:
    from shared.dependency import Dependency
    from shared.files import Folder, Reach

MAX_RECEIVE_COUNT = range(5, 1001)
DEFAULT_THREADS = 10
# The wait of a postponed job starts here and grows to the second; an hour of it must not use up maxReceiveCount.
SHORTEST_POSTPONEMENT = timedelta(seconds=5)
LONGEST_POSTPONEMENT = timedelta(minutes=1)
OUTAGE = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Worker:
    """A queue, its dead-letter queue, its consumer function and their alarms, for some job types.

    Attributes:
        name: part of the names of all resources.
        jobs: job types on this queue; a new line in `functions/registry.py` deploys them.
        batch_size: messages in one invocation.
        window: how long Lambda waits for a batch to fill.
        batch_concurrency: threads in one invocation; by default as many as the batch has messages, ten at the most.
        max_concurrency: invocations at one time (the mapping's MaximumConcurrency).
        reserved_concurrency: reserved concurrency of the function, at least `max_concurrency`; by default none.
        margin: time kept in each invocation to commit, invalidate, settle and answer.
        visibility: visibility timeout of the queue; by default the least that AWS advises.
        fifo: a FIFO queue: groups in order, isolated from each other.
        memory: memory of the function in MiB.
        pace: factor that `at_pace` has put on every duration.
    """

    name: str
    jobs: tuple[Job[Any, Any], ...]
    batch_size: int = 10
    window: timedelta = timedelta(0)
    batch_concurrency: int | None = None
    max_concurrency: int = 10
    reserved_concurrency: int | None = None
    margin: timedelta = timedelta(seconds=10)
    visibility: timedelta | None = None
    fifo: bool = False
    memory: int = 512
    pace: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what AWS would refuse at deploy, or what would lose or repeat messages in production.

        Raises:
            DeclarationError: with the arithmetic and the repair.
        """
        check_worker(self)

    @property
    def job_types(self) -> JobTypes:
        """The job types by name."""
        return JobTypes.of(*self.jobs)

    @property
    def threads(self) -> int:
        """Records of one batch that run side by side."""
        return min(self.batch_concurrency or DEFAULT_THREADS, self.batch_size)

    @property
    def rounds(self) -> int:
        """How many jobs run one after another in the worst batch: on a FIFO queue all may be of one group."""
        if self.fifo:
            return self.batch_size
        return math.ceil(self.batch_size / self.threads)

    @property
    def function_timeout(self) -> timedelta:
        """Timeout of the consumer function, in whole seconds."""
        longest = max(declared.timeout for declared in self.jobs)
        return timedelta(seconds=math.ceil((self.rounds * longest + self.margin).total_seconds()))

    @property
    def least_visibility(self) -> timedelta:
        """The lowest visibility timeout that leaves room for Lambda's own retries."""
        return VISIBILITY_FACTOR * self.function_timeout + self.window

    @property
    def visibility_timeout(self) -> timedelta:
        """Visibility timeout of the queue, in whole seconds."""
        return timedelta(seconds=math.ceil((self.visibility or self.least_visibility).total_seconds()))

    @property
    def max_receive_count(self) -> int:
        """Receives before SQS itself moves a message: attempts, and the postponements of an outage of an hour.

        A backstop for crashes before the claim; attempts are counted in the job record.
        """
        attempts = max(declared.retry.max_attempts for declared in self.jobs)
        bounces = math.ceil(OUTAGE / (LONGEST_POSTPONEMENT / 2))
        return min(MAX_RECEIVE_COUNT[-1], max(10, attempts + bounces))

    @property
    def max_latency(self) -> timedelta:
        """The strictest objective of the job types here."""
        return min(declared.max_latency for declared in self.jobs)

    @property
    def reaches(self) -> tuple[Reach, ...]:
        """The folders that its jobs may touch, each with the widest right."""
        widest: dict[Folder, Reach] = {}
        for declared in self.jobs:
            for reach in declared.reaches:
                if reach.right is Right.READ_WRITE or reach.folder not in widest:
                    widest[reach.folder] = reach
        return tuple(widest.values())

    @property
    def accesses(self) -> tuple[Access, ...]:
        """Tables of all job types, each once with the widest right."""
        widest: dict[str, Access] = {}
        for declared in self.jobs:
            for access in declared.accesses:
                known = widest.get(access.table.name)
                if known is not None and known.table != access.table:
                    message = f"worker {self.name!r}: table {access.table.name!r} is declared in two ways: keep one."
                    raise DeclarationError(message)
                if known is None or access.right is Right.READ_WRITE:
                    widest[access.table.name] = access
        return tuple(widest.values())

    @property
    def dependencies(self) -> tuple[Dependency, ...]:
        """Outside systems of all job types, each once."""
        by_name: dict[str, Dependency] = {}
        for dependency in (each for declared in self.jobs for each in declared.dependencies):
            if by_name.setdefault(dependency.name, dependency) != dependency:
                message = f"worker {self.name!r}: dependency {dependency.name!r} is declared in two ways: keep one."
                raise DeclarationError(message)
        return tuple(by_name.values())

    @property
    def needs(self) -> tuple[Dependency, ...]:
        """Dependencies with a breaker that every job type here uses: while one is down, nothing of this worker is done."""
        gated = [each for each in self.dependencies if each.breaker is not None]
        return tuple(each for each in gated if all(each in declared.dependencies for declared in self.jobs))

    def at_pace(self, pace: float) -> Worker:
        """The same worker with every duration multiplied by `pace`; 1 on AWS, less on a laptop."""
        if pace == 1:
            return self
        paced = replace(
            self,
            jobs=tuple(declared.at_pace(pace) for declared in self.jobs),
            margin=self.margin * pace,
            pace=self.pace * pace,
            visibility=None,
        )
        if self.visibility is None:
            return paced
        # The function's timeout is rounded up, and the window is Lambda's own: the least may be more than the share.
        return replace(paced, visibility=max(self.visibility * pace, paced.least_visibility))
