"""A task of Celery or Dramatiq: bare, or with the guarantees that its users would add."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import boto3
from redis import Redis

from benchmarks.peers.hand_wired import HandWired, Note
from tests.world import Context

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.load import Load, Meter


def handler_of(todo: Load, meter: Meter) -> Callable[[dict[str, Any]], None]:
    """What a worker of theirs runs for each message."""
    process = _guarded() if todo.guarded else _bare

    def run(job: dict[str, Any]) -> None:
        process(job=job)
        meter.ended()

    return run


def jobs(todo: Load) -> list[dict[str, Any]]:
    """The messages."""
    return [
        {"job_type": "pause", "idempotency_key": name, "payload": {"thing": name, "text": "x", "wait": todo.wait}}
        for name in todo.names
    ]


def _bare(job: dict[str, Any]) -> None:
    payload = Note.model_validate(job["payload"])
    if payload.wait:
        time.sleep(payload.wait / 1000)


def _guarded() -> Callable[..., Any]:
    """Idempotency on DynamoDB, redis-py's lock, and DEL of the cache key after; nothing else is written."""
    from aws_lambda_powertools.utilities.idempotency import DynamoDBPersistenceLayer  # noqa: PLC0415 - the bare task has none

    layer = DynamoDBPersistenceLayer("idempotency", boto3_client=boto3.client("dynamodb"))
    redis = Redis(port=int(os.environ["BENCH_VALKEY_PORT"]))
    wired = HandWired(layer, lambda thing, text: None, redis)  # noqa: ARG005 - as above
    wired.config.register_lambda_context(Context())  # type: ignore[arg-type]  # tells how long an attempt may hold its key
    process: Callable[..., Any] = wired.process
    return process
