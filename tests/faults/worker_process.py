"""A consumer in a process of its own, that a test may kill: `python -m tests.faults.worker_process SECONDS`."""

from __future__ import annotations

import os
import sys
import time

from functions import payments
from local.invoking.event_source_mapping import EventSourceMapping
from shared.backends.aws import client
from shared.consumer import Consumer
from shared.runtime import connect
from shared.settings import Settings
from tests.world import Context


def main(seconds: float) -> None:
    """Poll for a while."""
    settings = Settings.from_environ(os.environ)
    runtime = connect(payments.WORKER, settings)
    consumer = Consumer(runtime.worker, runtime)
    timeout = runtime.worker.function_timeout
    mapping = EventSourceMapping(client("sqs"), settings.queues["payments"], consumer.handle, lambda: Context(timeout))
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not mapping.poll():
            time.sleep(0.1)


if __name__ == "__main__":
    main(float(sys.argv[1]))
