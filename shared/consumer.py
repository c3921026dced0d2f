"""A worker's Lambda function: runs a batch side by side within the time left, and answers with an exact partial response."""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol

from shared.delivery import Delivery, read_event
from shared.errors import EventError
from shared.failpoints import Failpoint, failpoint
from shared.outcome import Because, DeadLettered, Postponed, Retried, signature
from shared.runtime import Runtime, connect
from shared.settings import Settings
from shared.telemetry import NO_JOB_TYPE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from concurrent.futures import Future
    from datetime import datetime
    from types import FrameType

    from shared.pipeline.preparation import Prepared
    from shared.worker import Worker

GIVE_UP = timedelta(milliseconds=300)  # before the invocation's end: an overrunning handler's process ends here
OVERRUN_STATUS = 70  # EX_SOFTWARE


class Context(Protocol):
    """What is used of the Lambda context."""

    aws_request_id: str

    def get_remaining_time_in_millis(self) -> int:
        """Time left of this invocation."""
        ...


@dataclass(slots=True)
class Consumer:
    """Handles the batches of one worker. Its threads wait for the next batch, which costs less than to start them anew."""

    worker: Worker
    runtime: Runtime
    end_process: Callable[[int], Any] = os._exit
    busy: threading.Event = field(default_factory=threading.Event)
    _pool: ThreadPoolExecutor | None = None

    def handle(self, event: object, context: Context) -> dict[str, Any]:
        """Run a batch; the answer names exactly the messages that are not to be deleted.

        Raises:
            EventError: the event or the context is not what Lambda promises; the whole batch comes back.
        """
        left = _time_left(context)
        until = self.runtime.clock.now() + left
        gives_up = self.runtime.clock.monotonic() + (left - GIVE_UP).total_seconds()
        deliveries = read_event(event)
        lanes = self._lanes(deliveries)
        self.runtime.telemetry.invocation(context.aws_request_id)
        coming_back: set[str] = set()
        pool, self._pool = self._pool or ThreadPoolExecutor(self.worker.threads, thread_name_prefix="job"), None
        self.busy.set()
        try:
            with self.runtime.keeper:
                self.runtime.execution.finishing.gathers = len(deliveries) == len(lanes) <= self.worker.threads
                at_once = {lane[0].message_id for lane in lanes[: self.worker.threads]}
                prepared = self.runtime.execution.preparation.together(deliveries, at_once, until)
                waiting = deque(lanes)
                futures = self._start(pool, waiting, until, prepared)
                done, unfinished = wait(futures, gives_up - self.runtime.clock.monotonic())
                if unfinished:
                    # Threads cannot be killed, and must not go on in a later invocation: the batch comes back,
                    # what was committed is then a duplicate.
                    self.runtime.telemetry.warn("handler_overran", unfinished=len(unfinished))
                    self.runtime.telemetry.flush()
                    self.end_process(OVERRUN_STATUS)
                for future in done:
                    coming_back |= future.result()
                for lane in waiting:  # not one thread could be started
                    coming_back |= self._hand_back(lane, timedelta(seconds=1), Because.TOO_LITTLE_TIME, prepared)
            self._pool = None if unfinished else pool
        finally:
            self.busy.clear()
            if self._pool is None:  # something of this batch may go on: nothing of it in the next
                pool.shutdown(wait=False, cancel_futures=True)
        self.runtime.telemetry.flush()
        failpoint(Failpoint.ANSWERING)
        return partial_response(deliveries, coming_back)

    def _lanes(self, deliveries: Sequence[Delivery]) -> list[list[Delivery]]:
        """Deliveries that must run one after another: those of one group on a FIFO queue, else each by itself."""
        if not self.worker.fifo:
            return [[delivery] for delivery in deliveries]
        groups: dict[str, list[Delivery]] = {}
        for delivery in deliveries:
            if not delivery.group:
                message = f"Worker {self.worker.name!r} is FIFO, but a record has no MessageGroupId: check the queue."
                raise EventError(message)
            groups.setdefault(delivery.group, []).append(delivery)
        return list(groups.values())

    def _start(
        self,
        pool: ThreadPoolExecutor,
        waiting: deque[list[Delivery]],
        until: datetime,
        prepared: Mapping[str, Prepared],
    ) -> list[Future[set[str]]]:
        """Start as many threads as there may be; each takes lanes until none waits, so that fewer threads do for all."""
        started: list[Future[set[str]]] = []
        for _ in range(min(self.worker.threads, len(waiting))):
            try:
                started.append(pool.submit(self._run_lanes, waiting, until, prepared))
            except RuntimeError as error:  # the process may have no more threads
                self._warn(error, None)
                break
        return started

    def _run_lanes(self, waiting: deque[list[Delivery]], until: datetime, prepared: Mapping[str, Prepared]) -> set[str]:
        coming_back: set[str] = set()
        while True:
            try:
                lane = waiting.popleft()
            except IndexError:
                return coming_back
            coming_back |= self._run_lane(lane, until, prepared)

    def _run_lane(self, lane: Sequence[Delivery], until: datetime, prepared: Mapping[str, Prepared]) -> set[str]:
        """Run a lane; give the ids of its messages that must come back: the first not done, and all behind it."""
        for place, delivery in enumerate(lane):
            acknowledged, after = self._run(delivery, until, prepared.get(delivery.message_id))
            if not acknowledged:
                behind = self._hand_back(lane[place + 1 :], after, Because.BEHIND, prepared)
                return {delivery.message_id, *behind}
        return set()

    def _hand_back(
        self, lane: Sequence[Delivery], after: timedelta, because: Because, prepared: Mapping[str, Prepared]
    ) -> set[str]:
        """Let go of deliveries that are not run, and have them come back."""
        for delivery in lane:
            if delivery.message_id in prepared:  # its heartbeat would overwrite the wait
                self.runtime.execution.preparation.let_go(prepared[delivery.message_id])
            try:
                self.runtime.settlement.settle(delivery, Postponed(after, because))
            except Exception as error:  # noqa: BLE001 - it comes back later than asked
                self._warn(error, delivery.message_id)
        return {delivery.message_id for delivery in lane}

    def _run(self, delivery: Delivery, until: datetime, prepared: Prepared | None) -> tuple[bool, timedelta]:
        """Execute and settle one delivery; give whether it is acknowledged, and else the wait."""
        try:
            outcome = self.runtime.execution.execute(delivery, until, prepared)
            acknowledged = self.runtime.settlement.settle(delivery, outcome)
        except Exception as error:  # noqa: BLE001 - a fault of the pipeline itself must not take the neighbours along
            self._count("records_failed")
            self._warn(error, delivery.message_id)
            self._hold_back(delivery)
            return False, timedelta(0)
        if isinstance(outcome, Retried | DeadLettered):
            self._count("records_failed")
        elif acknowledged:
            self._count("records_succeeded")
        return acknowledged, outcome.after if isinstance(outcome, Retried | Postponed) else timedelta(0)

    def _count(self, metric: str) -> None:
        """Count a record: an invocation whose records all failed is no error to Lambda."""
        self.runtime.telemetry.count(metric, NO_JOB_TYPE)

    def _hold_back(self, delivery: Delivery) -> None:
        try:
            self.runtime.settlement.hold_back(delivery)
        except Exception as error:  # noqa: BLE001 - the same fault, perhaps
            self._warn(error, delivery.message_id)

    def _warn(self, error: Exception, message_id: str | None) -> None:
        self.runtime.telemetry.warn(
            "pipeline_failed",
            message_id=message_id,
            error=type(error).__name__,
            signature=signature(error, "pipeline-failed"),
        )


def partial_response(deliveries: Sequence[Delivery], coming_back: AbstractSet[str]) -> dict[str, Any]:
    """The answer that Lambda expects of a mapping with ReportBatchItemFailures.

    Raises:
        EventError: an id is blank or not of this batch; answering it would lose or repeat the wrong messages.
    """
    known = {delivery.message_id for delivery in deliveries}
    if not coming_back <= known or not all(name.strip() for name in coming_back):
        message = "The partial response would name messages that are not in the batch: the batch comes back whole."
        raise EventError(message)
    return {
        "batchItemFailures": [
            {"itemIdentifier": delivery.message_id} for delivery in deliveries if delivery.message_id in coming_back
        ]
    }


def consume(worker: Worker) -> Callable[[object, Context], dict[str, Any]]:
    """Make the Lambda handler of a worker. The stores are connected at the first invocation, not at import."""
    consumers: list[Consumer] = []

    def handler(event: object, context: Context) -> dict[str, Any]:
        if not consumers:
            runtime = connect(worker, Settings.from_environ(os.environ))
            consumers.append(Consumer(runtime.worker, runtime))
            end_in_order(consumers[0])
        return consumers[0].handle(event, context)

    return handler


def end_in_order(consumer: Consumer) -> None:
    """On SIGTERM hand back what runs and take nothing new; with nothing running, end at once.

    Lambda sends it two seconds before the process ends, where an extension is installed.
    """

    def terminate(signum: int, frame: FrameType | None) -> None:
        del signum, frame
        consumer.runtime.stopping.set()
        if not consumer.busy.is_set():
            raise SystemExit(0)

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, terminate)


def _time_left(context: Context) -> timedelta:
    try:
        return timedelta(milliseconds=context.get_remaining_time_in_millis())
    except AttributeError as error:
        message = "The Lambda context is missing: without the time left no claim could have a deadline."
        raise EventError(message) from error
