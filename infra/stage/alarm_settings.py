"""The thresholds of alarms: named, with defaults that are starting points. A stage may change each by its name.

Shares are percent. Times are seconds, or ISO 8601 ("PT5M"), where they stand in `cdk.json`.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from infra.stage.retention import SHORTEST_REST
from shared.errors import DeclarationError

Share = Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)]
Count = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Least = Annotated[int, Field(ge=1)]
Width = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Time = Annotated[timedelta, Field(gt=timedelta(0))]


class AlarmSettings(BaseModel):
    """When alarms ring.

    Attributes:
        queue_age_warning_share: of a worker's objective; the alarm that pages rings at the whole of it.
        queue_age_retention_share: of the queue's retention, which is the limit where an objective is longer.
        dead_letter_warning: age of a dead letter that nobody has decided on.
        dead_letter_decision: what must be left to decide, when it pages, before SQS may forget the message.
        depth_band: how far over its baseline a queue's depth is too much, in standard deviations.
        depth_least: messages below which it is not looked at.
        drain_time: to work a backlog off at the present speed.
        in_flight: messages; SQS takes 120,000.
        retry_share: of the attempts in five minutes.
        least_jobs: jobs, records or deliveries in a window, below which no share of them is looked at.
        least_failures: of them, below which a share is not looked at.
        record_failure_share: of the records of a worker's batches.
        stuck: jobs that came back after more than twice their objective.
        duration_band: how far over its baseline the 95th percentile of a delivery's duration is too much.
        duration_least: below which it is not looked at.
        timeout_share: of the function's timeout, for its 99th percentile.
        error_warning_share: of invocations that failed.
        error_share: the same, when it pages.
        least_invocations: below which no share of them is looked at.
        concurrency_share: of the reserved concurrency.
        throttles: of invocations, a minute.
        contention_share: of the deliveries that could run but for a lock.
        lock_share: of the longest timeout of a worker's jobs, for the time a lock is held.
        lost_attempts: crashed, out of time, or overtaken by another, in five minutes.
        duplicate_share: of deliveries in five minutes.
        unknown_outcomes: jobs whose outside effect may have happened.
        invalidation_failures: a minute.
        dependency_share: of calls that got no answer or were not made, since the other side is down.
        least_calls: below which no share of them is looked at.
        cache_miss_share: of the reads through the cache.
        least_reads: below which no share of them is looked at.
        cache_mismatches: sampled hits that differed from the source, in five minutes.
        stream_lag_warning: age of a stream's record when its reader takes it.
        stream_lag: the same, when it pages; after 24 hours records are lost.
        outbox_lag: of the oldest message in the outbox.
        store_errors: throttled requests and errors of DynamoDB, a minute.
        conflict_share: of transactions.
        least_transactions: below which no share of them is looked at.
        cache_units: ElastiCache processing units a second.
        cache_bytes: kept in the cache.
        cache_throttled: commands that the cache turned away, a minute.
        api_error_share: of requests answered with an error of ours.
        least_requests: below which no share of them is looked at.
        api_latency: 99th percentile.
        objective: share of requests to be answered without an error of ours.
        fast_burn: of the objective's budget, as a multiple, over an hour and five minutes.
        slow_burn: the same, over six hours and thirty minutes.
        canary_patience: within which a canary operation must end.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    queue_age_warning_share: Share = 50
    queue_age_retention_share: Share = 25
    dead_letter_warning: Time = timedelta(hours=24)
    dead_letter_decision: Time = timedelta(days=2)
    depth_band: Width = 3
    depth_least: Least = 100
    drain_time: Time = timedelta(minutes=15)
    in_flight: Annotated[int, Field(ge=1, lt=120_000)] = 96_000
    retry_share: Share = 5
    least_jobs: Least = 20
    least_failures: Least = 3
    record_failure_share: Share = 2
    stuck: Count = 0
    duration_band: Width = 3
    duration_least: Time = timedelta(seconds=1)
    timeout_share: Share = 80
    error_warning_share: Share = 1
    error_share: Share = 5
    least_invocations: Least = 10
    concurrency_share: Share = 80
    throttles: Count = 0
    contention_share: Share = 20
    lock_share: Share = 100
    lost_attempts: Count = 5
    duplicate_share: Share = 20
    unknown_outcomes: Least = 1
    invalidation_failures: Count = 0
    dependency_share: Share = 10
    least_calls: Least = 10
    cache_miss_share: Share = 50
    least_reads: Least = 100
    cache_mismatches: Count = 0
    stream_lag_warning: Time = timedelta(seconds=60)
    stream_lag: Time = timedelta(hours=1)
    outbox_lag: Time = timedelta(minutes=5)
    store_errors: Count = 0
    conflict_share: Share = 1
    least_transactions: Least = 20
    cache_units: Least = 10_000
    cache_bytes: Least = 4 * 1024**3
    cache_throttled: Count = 0
    api_error_share: Share = 0.5
    least_requests: Least = 20
    api_latency: Time = timedelta(seconds=1)
    objective: Annotated[float, Field(gt=0, lt=100, allow_inf_nan=False)] = 99.9
    fast_burn: Width = 14.4
    slow_burn: Width = 6
    canary_patience: Time = timedelta(seconds=60)

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if not timedelta(hours=1) <= self.dead_letter_decision < SHORTEST_REST:
            message = (
                f"alarms: dead_letter_decision={self.dead_letter_decision}: a dead letter may be lost after {SHORTEST_REST}:"
                " leave an hour or more to decide, and less than that."
            )
            raise DeclarationError(message)
        if self.dead_letter_warning >= SHORTEST_REST - self.dead_letter_decision:
            message = (
                f"alarms: dead_letter_warning={self.dead_letter_warning} comes after the page, at"
                f" {SHORTEST_REST - self.dead_letter_decision}: lower it, or dead_letter_decision."
            )
            raise DeclarationError(message)
        return self
