"""What is refused of a worker: what AWS would refuse at deploy, or what would lose or repeat messages in production.

Each refusal shows its arithmetic and the repair.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from shared.declaring.job_checks import LONGEST_FUNCTION
from shared.errors import DeclarationError
from shared.limits import LONGEST_HIDDEN
from shared.table import NAME

if TYPE_CHECKING:
    from shared.worker import Worker

VISIBILITY_FACTOR = 6
LONGEST_WINDOW = timedelta(seconds=300)
LARGEST_BATCH = 10_000
LARGEST_BATCH_WITHOUT_WINDOW = 10
LARGEST_FIFO_BATCH = 10
MAX_CONCURRENCY = range(2, 1001)
MEMORY = range(128, 10_241)
MOST_THREADS = 200  # Lambda allows 1,024 threads and as many open files, and each thread has connections
BEAT_TAKES = timedelta(milliseconds=100)  # two calls, one after another, on the one thread that beats for a batch


def check_worker(worker: Worker) -> None:
    """Return if the worker can be deployed and loses nothing.

    Raises:
        DeclarationError: with the arithmetic and the repair.
    """
    _check_shape(worker)
    _check_batch(worker)
    _check_concurrency(worker)
    _check_times(worker)


def _check_shape(worker: Worker) -> None:
    if not NAME.fullmatch(worker.name):
        message = f"worker {worker.name!r}: use lower case words joined by '-', like 'payments'."
        raise DeclarationError(message)
    if not worker.jobs:
        message = f"worker {worker.name!r}: give at least one job type."
        raise DeclarationError(message)
    _ = worker.job_types, worker.accesses, worker.dependencies
    _check_parts(worker)
    if worker.memory not in MEMORY:
        message = f"worker {worker.name!r}: memory={worker.memory} must be {MEMORY[0]} to {MEMORY[-1]} MiB."
        raise DeclarationError(message)


def _check_parts(worker: Worker) -> None:
    for declared in worker.jobs:
        if declared.parts and worker.fifo:
            message = (
                f"worker {worker.name!r}: {declared.name} is split into parts, and a FIFO queue would run them one after"
                " another: use a standard queue."
            )
            raise DeclarationError(message)
        for part in declared.parts:
            if part.name not in worker.job_types.by_name:
                message = (
                    f"worker {worker.name!r}: {declared.name} is split into {part.name}, which is not among its jobs: add"
                    " it to `jobs`."
                )
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
    if worker.visibility_timeout > LONGEST_HIDDEN:
        message = (
            f"{name}: visibility {seconds.format(chosen)} is over SQS's"
            f" {seconds.format(LONGEST_HIDDEN.total_seconds())}: lower it."
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
