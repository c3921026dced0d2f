"""A worker's Lambda function: runs a batch side by side within the time left, and answers with an exact partial response."""

from __future__ import annotations

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol

from shared.delivery import Delivery, read_event
from shared.errors import EventError
from shared.failpoints import Failpoint, failpoint
from shared.outcome import Because, Postponed, Retried, signature
from shared.runtime import Runtime, connect
from shared.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from datetime import datetime
    from types import FrameType

    from shared.preparation import Prepared
    from shared.worker import Worker

GIVE_UP = timedelta(milliseconds=300)  # before the invocation's end: an overrunning handler's process ends here
OVERRUN_STATUS = 70  # EX_SOFTWARE


class Context(Protocol):
    """What is used of the Lambda context."""

    aws_request_id: str

    def get_remaining_time_in_millis(self) -> int:
        """Time left of this invocation."""
        ...


@dataclass(frozen=True, slots=True)
class Consumer:
    """Handles the batches of one worker."""

    worker: Worker
    runtime: Runtime
    end_process: Callable[[int], Any] = os._exit
    busy: threading.Event = field(default_factory=threading.Event)

    def handle(self, event: object, context: Context) -> dict[str, Any]:
        """Run a batch; the answer names exactly the messages that are not to be deleted.

        Raises:
            EventError: the event or the context is not what Lambda promises; the whole batch comes back.
        """
        left = _time_left(context)
        until = self.runtime.clock.now() + left
        deliveries = read_event(event)
        lanes = self._lanes(deliveries)
        self.runtime.telemetry.invocation(context.aws_request_id)
        coming_back: set[str] = set()
        pool = ThreadPoolExecutor(self.worker.threads, thread_name_prefix="job")
        self.busy.set()
        try:
            with self.runtime.keeper:
                prepared = self._prepare(deliveries, lanes, until)
                futures = [pool.submit(self._run_lane, lane, until, prepared) for lane in lanes]
                done, unfinished = wait(futures, (left - GIVE_UP).total_seconds())
                if unfinished:
                    # Threads cannot be killed, and must not go on in a later invocation: the batch comes back,
                    # what was committed is then a duplicate.
                    self.runtime.telemetry.warn("handler_overran", unfinished=len(unfinished))
                    self.runtime.telemetry.flush()
                    self.end_process(OVERRUN_STATUS)
                for future in done:
                    coming_back |= future.result()
        finally:
            self.busy.clear()
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

    def _prepare(
        self, deliveries: Sequence[Delivery], lanes: Sequence[Sequence[Delivery]], until: datetime
    ) -> dict[str, Prepared]:
        """Do what is cheaper for the whole batch; a fault in it costs the others nothing but that."""
        at_once = {lane[0].message_id for lane in lanes[: self.worker.threads]}
        try:
            return self.runtime.execution.preparation.together(deliveries, at_once, until)
        except Exception as error:  # noqa: BLE001 - each delivery is then prepared in its own turn
            self._warn(error, None)
            return {}

    def _run_lane(self, lane: Sequence[Delivery], until: datetime, prepared: Mapping[str, Prepared]) -> set[str]:
        """Run a lane; give the ids of its messages that must come back: the first not done, and all behind it."""
        for place, delivery in enumerate(lane):
            acknowledged, after = self._run(delivery, until, prepared.get(delivery.message_id))
            if not acknowledged:
                behind = lane[place + 1 :]
                for sibling in behind:
                    self.runtime.settlement.settle(sibling, Postponed(after, Because.BEHIND))
                return {delivery.message_id, *(sibling.message_id for sibling in behind)}
        return set()

    def _run(self, delivery: Delivery, until: datetime, prepared: Prepared | None) -> tuple[bool, timedelta]:
        """Execute and settle one delivery; give whether it is acknowledged, and else the wait."""
        try:
            outcome = self.runtime.execution.execute(delivery, until, prepared)
            acknowledged = self.runtime.settlement.settle(delivery, outcome)
        except Exception as error:  # noqa: BLE001 - a fault of the pipeline itself must not take the neighbours along
            self._warn(error, delivery.message_id)
            return False, timedelta(0)
        return acknowledged, outcome.after if isinstance(outcome, Retried | Postponed) else timedelta(0)

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
