"""A consumer process of the validation: the product's own consumer behind our own event source mapping, with the times it took."""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from functions import payments
from local.invoking.event_source_mapping import EventSourceMapping
from shared.backends.aws import client
from shared.consumer import Consumer
from shared.runtime import connect

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.synchronize import Event
    from pathlib import Path

    from shared.settings import Settings

CONSUMERS = 2  # processes, of one invocation at a time each
THREADS = 4
WORKER = replace(payments.WORKER, batch_size=THREADS, batch_concurrency=THREADS, max_concurrency=CONSUMERS)
IDLE = 0.1  # seconds between two looks of an idle poller
LEFT = 60_000  # milliseconds that an invocation has


@dataclass(frozen=True, slots=True)
class Invocation:
    """A Lambda context."""

    aws_request_id: str = "validation"

    def get_remaining_time_in_millis(self) -> int:
        """Time left of this invocation."""
        return LEFT


@dataclass
class Watched:
    """An SQS client and a handler whose times are noted, in seconds of the wall clock."""

    sqs: Any
    handler: Callable[[dict[str, Any], Any], Any]
    received: float = 0
    began: float = 0
    ended: float = 0
    keys: list[str] = field(default_factory=list)

    def receive_message(self, **arguments: Any) -> Any:  # noqa: ANN401 - as boto3 has it
        """Receive."""
        before = time.time()
        answer = self.sqs.receive_message(**arguments)
        self.received = time.time() - before
        return answer

    def delete_message(self, **arguments: Any) -> Any:  # noqa: ANN401 - as boto3 has it
        """Delete."""
        return self.sqs.delete_message(**arguments)

    def handle(self, event: dict[str, Any], context: Any) -> Any:  # noqa: ANN401 - as Lambda has it
        """Invoke the consumer."""
        self.keys = [json.loads(record["body"])["idempotency_key"] for record in event["Records"]]
        self.began = time.time()
        answer = self.handler(event, context)
        self.ended = time.time()
        return answer

    def noted(self) -> str:
        """The last batch, as a line of JSON."""
        times = {"received": self.received, "began": self.began, "ended": self.ended, "deleted": time.time()}
        return json.dumps({"keys": self.keys, **times})


def consume(settings: Settings, endpoint: str, notes: Path, over: Event) -> None:
    """Poll until it is over; write a line for each batch."""
    os.environ["AWS_ENDPOINT_URL"] = endpoint
    logging.disable()
    with open(os.devnull, "w", encoding="utf-8") as nowhere, notes.open("w", encoding="utf-8") as lines:  # noqa: PTH123
        sys.stdout = nowhere
        made = connect(WORKER, settings)
        watched = Watched(client("sqs"), Consumer(made.worker, made).handle)
        url = settings.queues[WORKER.name]
        mapping = EventSourceMapping(watched, url, watched.handle, Invocation, WORKER.batch_size)
        while not over.is_set():
            if mapping.poll():
                lines.write(f"{watched.noted()}\n")
                lines.flush()
            else:
                time.sleep(IDLE)
