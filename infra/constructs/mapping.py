"""Event source mappings: SQS to a consumer, a table's stream to the relay and to the part counter.

Both always report failed items one by one. A mapping of SQS never filters: what does not match a filter is deleted.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_lambda as lambda_

from infra.constructs.queue_pair import encrypted_queue, seconds
from infra.grants import BRAKE, SEND, STREAM_READ, allow, allow_queue
from infra.stage.retention import DEAD_LETTER_RETENTION
from shared.backends.mappings import Mapped
from shared.parts import STATES

if TYPE_CHECKING:
    from aws_cdk import aws_dynamodb as dynamodb
    from aws_cdk import aws_sqs as sqs
    from constructs import Construct

    from infra.constructs.foundation import Foundation
    from infra.constructs.function import Function
    from shared.worker import Worker

PARTIAL_RESPONSES = ["ReportBatchItemFailures"]
STREAM_BATCH = 100
# Only age gives a record up: attempts of a stream follow each other within seconds, so that any number of them would be
# spent in an outage of minutes, and nothing sends again what was given up. Bisecting lets the records before a poison one
# through and leaves that one alone in its batch; its shard then waits for it, which the alarm on lag tells at once.
UNLIMITED = -1
STREAM_RECORD_AGE = timedelta(hours=6)  # a stream forgets after 24: the rest is for what waited behind it
ONLY_NEW_ITEMS = json.dumps({"eventName": ["INSERT"]})
# Job records that are parts, as they end: nobody pays for the changes of the others.
ENDED_PARTS = json.dumps(
    {
        "eventName": ["MODIFY"],
        "dynamodb": {
            "NewImage": {
                "part_of": {"S": [{"exists": True}]},
                "status": {"S": [status.value for status in STATES]},
            }
        },
    }
)


@dataclass(frozen=True, slots=True)
class WorkerMapping:
    """A worker's event source mapping, as functions that brake it are told."""

    worker: Worker
    mapping: lambda_.CfnEventSourceMapping

    @property
    def settings(self) -> dict[str, str]:
        """Its id and its declared concurrency, by the worker's name."""
        return {self.worker.name: Mapped(self.mapping.ref, self.worker.max_concurrency).written}

    def let_brake(self, function: Function) -> None:
        """Let a function pause and free it."""
        arn = Stack.of(self.mapping).format_arn(
            service="lambda",
            resource="event-source-mapping",
            resource_name=self.mapping.ref,
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )
        allow(function.role, BRAKE, arn)


def consume_queue(scope: Construct, worker: Worker, queue: sqs.IQueue, function: Function) -> WorkerMapping:
    """Feed a worker's queue to its consumer, at most `max_concurrency` batches at one time."""
    mapping = lambda_.CfnEventSourceMapping(
        scope,
        "Mapping",
        function_name=function.live.function_arn,
        event_source_arn=queue.queue_arn,
        batch_size=worker.batch_size,
        maximum_batching_window_in_seconds=None if worker.fifo else int(worker.window.total_seconds()),
        function_response_types=PARTIAL_RESPONSES,
        scaling_config=lambda_.CfnEventSourceMapping.ScalingConfigProperty(maximum_concurrency=worker.max_concurrency),
    )
    return WorkerMapping(worker, mapping)


def consume_stream(
    scope: Construct, table: dynamodb.ITable, function: Function, foundation: Foundation, pattern: str
) -> sqs.Queue:
    """Feed the changes of a table that match a pattern to a function; gives the queue of what it gave up."""
    failures = encrypted_queue(
        scope,
        "GivenUp",
        key=foundation.key,
        retain=foundation.stage.retain,
        retention_period=seconds(DEAD_LETTER_RETENTION),
    )
    allow(function.role, STREAM_READ, table.table_stream_arn or "")
    allow_queue(function.role, failures, SEND)
    mapping = lambda_.CfnEventSourceMapping
    mapping(
        scope,
        "Mapping",
        function_name=function.live.function_arn,
        event_source_arn=table.table_stream_arn,
        starting_position="TRIM_HORIZON",
        batch_size=STREAM_BATCH,
        bisect_batch_on_function_error=True,
        function_response_types=PARTIAL_RESPONSES,
        maximum_retry_attempts=UNLIMITED,
        maximum_record_age_in_seconds=int(STREAM_RECORD_AGE.total_seconds()),
        destination_config=mapping.DestinationConfigProperty(
            on_failure=mapping.OnFailureProperty(destination=failures.queue_arn)
        ),
        filter_criteria=mapping.FilterCriteriaProperty(filters=[mapping.FilterProperty(pattern=pattern)]),
    )
    return failures
