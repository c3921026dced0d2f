"""Dramatiq on Redis, as a process: `python -m benchmarks.peers.dramatiq_worker LOAD`. Its defaults, with ten threads."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from benchmarks import load
from benchmarks.peers import guarded

if TYPE_CHECKING:
    from benchmarks.load import Load, Meter


def work(todo: Load, meter: Meter) -> None:
    """Send the jobs, and do them."""
    broker = RedisBroker(
        host="127.0.0.1", port=int(os.environ["BENCH_VALKEY_PORT"]), namespace=os.environ["BENCH_QUEUE"]
    )
    dramatiq.set_broker(broker)
    actor = dramatiq.actor(guarded.handler_of(todo, meter), actor_name="pause")
    for job in guarded.jobs(todo):
        actor.send(job)
    dramatiq.Worker(broker, worker_threads=load.THREADS).start()


if __name__ == "__main__":
    load.run(work)
