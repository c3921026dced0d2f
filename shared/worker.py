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

from shared.errors import DeclarationError
from shared.job import LONGEST_FUNCTION, Job, JobTypes
from shared.retry import LONGEST_WAIT
from shared.table import NAME, Access, Right

if TYPE_CHECKING:
    from shared.dependency import Dependency

VISIBILITY_FACTOR = 6
LONGEST_WINDOW = timedelta(seconds=300)
LARGEST_BATCH = 10_000
LARGEST_BATCH_WITHOUT_WINDOW = 10
LARGEST_FIFO_BATCH = 10
MAX_CONCURRENCY = range(2, 1001)
MAX_RECEIVE_COUNT = range(5, 1001)
MEMORY = range(128, 10_241)
DEFAULT_THREADS = 10
MOST_THREADS = 200  # Lambda allows 1,024 threads and as many open files, and each thread has connections
# The wait of a postponed job starts here and grows to the second; an hour of it must not use up maxReceiveCount.
SHORTEST_POSTPONEMENT = timedelta(seconds=5)
LONGEST_POSTPONEMENT = timedelta(minutes=1)
OUTAGE = timedelta(hours=1)
BEAT_TAKES = timedelta(milliseconds=100)  # two calls, one after another, on the one thread that beats for a batch


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
        _check_shape(self)
        _check_batch(self)
        _check_concurrency(self)
        _check_times(self)

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
        by_name = {dependency.name: dependency for declared in self.jobs for dependency in declared.dependencies}
        return tuple(by_name.values())

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


def _check_shape(worker: Worker) -> None:
    if not NAME.fullmatch(worker.name):
        message = f"worker {worker.name!r}: use lower case words joined by '-', like 'payments'."
        raise DeclarationError(message)
    if not worker.jobs:
        message = f"worker {worker.name!r}: give at least one job type."
        raise DeclarationError(message)
    _ = worker.job_types, worker.accesses
    if worker.memory not in MEMORY:
        message = f"worker {worker.name!r}: memory={worker.memory} must be {MEMORY[0]} to {MEMORY[-1]} MiB."
        raise DeclarationError(message)


def _check_batch(worker: Worker) -> None:
    name = f"worker {worker.name!r}"
    if isinstance(worker.batch_size, bool) or not isinstance(worker.batch_size, int):
        message = f"{name}: batch_size={worker.batch_size!r} must be a whole number."
        raise DeclarationError(message)
    if worker.fifo:
        _check_fifo(worker)
        if not 1 <= worker.batch_size <= LARGEST_FIFO_BATCH:
            message = f"{name}: a FIFO queue takes batch_size 1 to {LARGEST_FIFO_BATCH}, not {worker.batch_size}."
            raise DeclarationError(message)
        if worker.window:
            message = f"{name}: a FIFO queue takes no batching window, not {worker.window}: leave `window` out."
            raise DeclarationError(message)
    if not 1 <= worker.batch_size <= LARGEST_BATCH:
        message = f"{name}: batch_size={worker.batch_size} must be 1 to {LARGEST_BATCH}."
        raise DeclarationError(message)
    if not timedelta(0) <= worker.window <= LONGEST_WINDOW or worker.window % timedelta(seconds=1):
        message = f"{name}: window={worker.window} must be whole seconds, 0 to {int(LONGEST_WINDOW.total_seconds())}."
        raise DeclarationError(message)
    if worker.batch_size > LARGEST_BATCH_WITHOUT_WINDOW and worker.window < timedelta(seconds=1):
        message = (
            f"{name}: batch_size={worker.batch_size} is over {LARGEST_BATCH_WITHOUT_WINDOW}, so Lambda wants a window"
            " of 1 to 300 seconds: give `window`, or a smaller batch."
        )
        raise DeclarationError(message)
    if worker.batch_concurrency is not None and not 1 <= worker.batch_concurrency <= MOST_THREADS:
        message = (
            f"{name}: batch_concurrency={worker.batch_concurrency} must be 1 or more, and {MOST_THREADS} at the most."
        )
        raise DeclarationError(message)


def _check_fifo(worker: Worker) -> None:
    """A message on a FIFO queue needs a group, which neither a client nor a schedule gives."""
    for declared in worker.jobs:
        if declared.open_to_clients or declared.cron is not None:
            option = "open_to_clients" if declared.open_to_clients else "cron"
            message = (
                f"worker {worker.name!r}: a message on a FIFO queue needs a group, and nobody gives job {declared.name!r}"
                f" one: leave `{option}` out, or let a standard queue have the job."
            )
            raise DeclarationError(message)


def _check_concurrency(worker: Worker) -> None:
    name = f"worker {worker.name!r}"
    if worker.max_concurrency not in MAX_CONCURRENCY:
        message = (
            f"{name}: max_concurrency={worker.max_concurrency} must be {MAX_CONCURRENCY[0]} to {MAX_CONCURRENCY[-1]}"
            " (Lambda's MaximumConcurrency)."
        )
        raise DeclarationError(message)
    if worker.reserved_concurrency is not None and worker.reserved_concurrency < worker.max_concurrency:
        message = (
            f"{name}: reserved_concurrency={worker.reserved_concurrency} is below max_concurrency="
            f"{worker.max_concurrency}: throttled polls would spend the receives of messages that never ran; raise the"
            " first or lower the second."
        )
        raise DeclarationError(message)


def _check_times(worker: Worker) -> None:
    name = f"worker {worker.name!r}"
    seconds = "{:.0f} s"
    longest = max(declared.timeout for declared in worker.jobs)
    if worker.margin <= timedelta(0):
        message = f"{name}: margin={worker.margin} leaves no time to commit and to answer: give some seconds."
        raise DeclarationError(message)
    if worker.function_timeout > LONGEST_FUNCTION:
        message = (
            f"{name}: {worker.batch_size} messages{' of one group' if worker.fifo else f' on {worker.threads} threads'}"
            f" are {worker.rounds} rounds x"
            f" {longest.total_seconds():g} s + margin {worker.margin.total_seconds():g} s ="
            f" {worker.function_timeout.total_seconds():.0f} s, Lambda allows"
            f" {LONGEST_FUNCTION.total_seconds():.0f} s: lower the batch size or the timeout, or raise the threads."
        )
        raise DeclarationError(message)
    _check_heartbeats(worker)
    least, chosen = worker.least_visibility.total_seconds(), worker.visibility_timeout.total_seconds()
    if chosen < least:
        message = (
            f"{name}: visibility {seconds.format(chosen)} is below {VISIBILITY_FACTOR} x function timeout"
            f" {seconds.format(worker.function_timeout.total_seconds())} + window"
            f" {seconds.format(worker.window.total_seconds())} = {seconds.format(least)}: messages would come back"
            " while they still run; leave `visibility` out or raise it."
        )
        raise DeclarationError(message)
    if worker.visibility_timeout > LONGEST_WAIT:
        message = (
            f"{name}: visibility {seconds.format(chosen)} is over SQS's"
            f" {seconds.format(LONGEST_WAIT.total_seconds())}: lower it."
        )
        raise DeclarationError(message)


def _check_heartbeats(worker: Worker) -> None:
    shortest = min((declared.heartbeat for declared in worker.jobs if declared.heartbeat is not None), default=None)
    if shortest is None:
        return
    whole, beat = worker.batch_size * BEAT_TAKES, shortest / worker.pace
    if whole > beat + timedelta(milliseconds=1):  # pace and back again is not exact
        message = (
            f"worker {worker.name!r}: to beat for {worker.batch_size} messages may take {whole.total_seconds():g} s, longer"
            f" than the shortest heartbeat of {beat.total_seconds():g} s: messages would come back while they wait or run;"
            " lower the batch size or give a longer heartbeat."
        )
        raise DeclarationError(message)
