"""The stack that people wire by hand: Powertools' batch processor and idempotency, redis-py's lock, and DEL after the write.

As the documentation of Powertools for AWS Lambda shows it ("Batch Processing", "Idempotency", "Logger", "Metrics"), with
pydantic for the payload. It runs a batch's records one after another; `asynchronous` is the same with the asynchronous
processor, whose records' blocking work goes to threads.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.batch import (
    AsyncBatchProcessor,
    BatchProcessor,
    EventType,
    async_process_partial_response,
    process_partial_response,
)
from aws_lambda_powertools.utilities.idempotency import (
    DynamoDBPersistenceLayer,
    IdempotencyConfig,
    idempotent_function,
)
from aws_lambda_powertools.utilities.idempotency.exceptions import (
    IdempotencyItemAlreadyExistsError,
    IdempotencyItemNotFoundError,
)
from aws_lambda_powertools.utilities.idempotency.persistence.base import BasePersistenceLayer
from pydantic import BaseModel

if TYPE_CHECKING:
    from collections.abc import Callable

    from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
    from aws_lambda_powertools.utilities.idempotency.persistence.datarecord import DataRecord
    from redis import Redis

    Handler = Callable[[dict[str, Any], Any], Any]
    Write = Callable[[str, str], object]

LOCK_SECONDS, LOCK_WAIT_SECONDS = 30, 1


class Note(BaseModel):
    """The payload of our own note; `wait` in milliseconds."""

    thing: str
    text: str = "x"
    wait: int = 0


class StubLayer(BasePersistenceLayer):
    """Idempotency records in this process."""

    def __init__(self) -> None:
        """Begin with none."""
        super().__init__()  # type: ignore[no-untyped-call]
        self.records: dict[str, DataRecord] = {}

    def _get_record(self, idempotency_key: str) -> DataRecord:
        if idempotency_key not in self.records:
            raise IdempotencyItemNotFoundError
        return self.records[idempotency_key]

    def _put_record(self, data_record: DataRecord) -> None:
        known = self.records.get(data_record.idempotency_key)
        if known is not None and (known.expiry_timestamp or 0) > time.time():
            raise IdempotencyItemAlreadyExistsError(old_data_record=known)
        self.records[data_record.idempotency_key] = data_record

    def _update_record(self, data_record: DataRecord) -> None:
        self.records[data_record.idempotency_key] = data_record

    def _delete_record(self, data_record: DataRecord) -> None:
        del self.records[data_record.idempotency_key]


class HandWired:
    """A worker's function, wired by hand.

    Attributes:
        handler: one record after another.
        asynchronous: the asynchronous processor, with each record's work in a thread of its own.
        blocking: the asynchronous processor around the same function as it is: it blocks the loop.
    """

    def __init__(self, layer: BasePersistenceLayer, write: Write, redis: Redis | None = None) -> None:
        """Use these stores; without Redis there is neither lock nor cache."""
        self._write, self._redis = write, redis
        self._logger, self._metrics = Logger(service="notes"), Metrics(namespace="peer", service="notes")
        self.config = config = IdempotencyConfig(event_key_jmespath="idempotency_key", expires_after_seconds=30 * 86400)
        self.process = process = idempotent_function(
            self._process, data_keyword_argument="job", persistence_store=layer, config=config
        )

        def record_handler(record: SQSRecord) -> Any:  # noqa: ANN401 - what the job gives
            return process(job=json.loads(record.body))

        async def threaded(record: SQSRecord) -> Any:  # noqa: ANN401 - as above
            return await asyncio.to_thread(record_handler, record)

        async def blocked(record: SQSRecord) -> Any:  # noqa: ANN401 - as above; that it blocks is the point
            return record_handler(record)

        one_by_one, side_by_side = BatchProcessor(EventType.SQS), AsyncBatchProcessor(EventType.SQS)

        def in_turn(event: dict[str, Any], context: Any) -> Any:  # noqa: ANN401 - Lambda's
            return process_partial_response(event, record_handler, one_by_one, context)

        def in_threads(event: dict[str, Any], context: Any) -> Any:  # noqa: ANN401 - Lambda's
            return async_process_partial_response(event, threaded, side_by_side, context)

        def in_the_loop(event: dict[str, Any], context: Any) -> Any:  # noqa: ANN401 - Lambda's
            return async_process_partial_response(event, blocked, side_by_side, context)

        self.handler, self.asynchronous, self.blocking = map(self._wired, (in_turn, in_threads, in_the_loop))

    def _wired(self, respond: Handler) -> Handler:
        def handler(event: dict[str, Any], context: Any) -> Any:  # noqa: ANN401 - Lambda's
            self.config.register_lambda_context(context)
            self._logger.append_keys(function_request_id=context.aws_request_id)
            return respond(event, context)

        wired: Handler = self._metrics.log_metrics(handler)
        return wired

    def _process(self, job: dict[str, Any]) -> dict[str, str]:
        payload = Note.model_validate(job["payload"])
        with self._locked(payload.thing):
            if payload.wait:
                time.sleep(payload.wait / 1000)
            self._write(payload.thing, payload.text)
            if self._redis is not None:
                self._redis.delete(f"cache:thing/{payload.thing}")
        self._metrics.add_metric(name="completed", unit=MetricUnit.Count, value=1)
        self._logger.info("job", extra={"job_type": job["job_type"], "result": "completed", "thing": payload.thing})
        return {"written": payload.text}

    def _locked(self, thing: str) -> contextlib.AbstractContextManager[Any]:
        if self._redis is None:
            return contextlib.nullcontext()
        lock: contextlib.AbstractContextManager[Any] = self._redis.lock(
            f"lock:thing/{thing}", timeout=LOCK_SECONDS, blocking_timeout=LOCK_WAIT_SECONDS
        )
        return lock


def in_process() -> HandWired:
    """With stores in this process."""
    items: dict[str, str] = {}
    return HandWired(StubLayer(), items.__setitem__)


def on_stores(dynamodb: Any, redis: Redis, table: str, things: str) -> HandWired:  # noqa: ANN401 - boto3 builds the class
    """With DynamoDB tables of these names, and Redis."""

    def write(thing: str, text: str) -> None:
        dynamodb.put_item(TableName=things, Item={"id": {"S": thing}, "text": {"S": text}})

    return HandWired(DynamoDBPersistenceLayer(table, boto3_client=dynamodb), write, redis)
