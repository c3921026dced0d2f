"""Celery on SQS, as a process: `python -m benchmarks.peers.celery_worker LOAD`.

As its documentation sets it up for jobs that must not be lost and that wait for others: acknowledged late, a pool of
threads, no results, no gossip. Four messages ahead for each thread are its default, and faster here than one. Long polling
is off, since moto answers one request at a time.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from celery import Celery
from celery.signals import setup_logging

from benchmarks import load
from benchmarks.peers import guarded

if TYPE_CHECKING:
    from benchmarks.load import Load, Meter


@setup_logging.connect  # type: ignore[untyped-decorator]  # Celery is not here where types are checked
def log_nothing(**_: object) -> None:
    """Leave logging alone: else each line of the task's own logger is written once more."""


def work(todo: Load, meter: Meter) -> None:
    """Send the jobs, and do them."""
    endpoint = os.environ["AWS_ENDPOINT_URL"].removeprefix("http://")
    queue = os.environ["BENCH_QUEUE"]
    app = Celery("notes", broker=f"sqs://testing:testing@{endpoint}", set_as_current=True)
    app.conf.update(
        broker_transport_options={
            "region": os.environ["AWS_DEFAULT_REGION"],
            "is_secure": False,
            "visibility_timeout": 600,
            "wait_time_seconds": 0,
            "polling_interval": 0.1,
        },
        broker_connection_retry_on_startup=True,
        task_default_queue=queue,
        task_acks_late=True,
        task_reject_on_worker_lost=True,
        task_ignore_result=True,
        worker_enable_remote_control=False,
        worker_send_task_events=False,
    )
    task = app.task(name="pause")(guarded.handler_of(todo, meter))
    for job in guarded.jobs(todo):
        task.apply_async((job,))
    pool = ("--pool=threads", f"--concurrency={load.THREADS}", "--without-gossip", "--without-mingle")
    arguments = ["worker", *pool, "--without-heartbeat", "--loglevel=WARNING"]
    threading.Thread(target=app.worker_main, args=(arguments,), daemon=True).start()


if __name__ == "__main__":
    load.run(work)
