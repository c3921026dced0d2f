"""The clock that calls a function once a minute."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Duration
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets

if TYPE_CHECKING:
    from constructs import Construct

    from infra.constructs.function import Function

EVERY = Duration.minutes(1)


def every_minute(scope: Construct, function: Function, description: str) -> None:
    """Have a function called every minute. A call that failed is not repeated: the next minute's does the same."""
    events.Rule(
        scope,
        "EveryMinute",
        description=description,
        schedule=events.Schedule.rate(EVERY),
        targets=[targets.LambdaFunction(function.live, retry_attempts=0, max_event_age=EVERY)],
    )
