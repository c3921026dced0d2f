"""The audit in CloudWatch Logs, as moto has it."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from shared.backends.audit_log import CloudWatchAudit, caller
from shared.backends.aws import client
from shared.clock import SystemClock
from shared.errors import Unavailable


@pytest.fixture
def group(aws_endpoint: str) -> str:
    name = f"audit-{uuid.uuid4().hex}"
    client("logs").create_log_group(logGroupName=name)
    return name


def test_lines_are_kept_in_their_order_in_a_stream_of_the_commands_own(group: str) -> None:
    log = CloudWatchAudit(client("logs"), group, SystemClock(), "stream")
    log.write('{"n": 1}')
    log.write('{"n": 2}')
    CloudWatchAudit(client("logs"), group, SystemClock(), "stream").write('{"n": 3}')  # the reply was lost
    events = client("logs").get_log_events(logGroupName=group, logStreamName="stream", startFromHead=True)["events"]
    assert [event["message"] for event in events] == ['{"n": 1}', '{"n": 2}', '{"n": 3}']


def test_a_log_group_that_is_gone_keeps_nothing(aws_endpoint: str) -> None:
    with pytest.raises(Unavailable):
        CloudWatchAudit(client("logs"), "nowhere", SystemClock(), "s").write("x")


def test_a_line_that_cloudwatch_rejects_is_not_kept(group: str) -> None:
    class Rejecting:
        exceptions: Any = client("logs").exceptions

        def create_log_stream(self, **_: str) -> None: ...

        def put_log_events(self, **_: object) -> dict[str, Any]:
            return {"rejectedLogEventsInfo": {"tooNewLogEventStartIndex": 0}}

    with pytest.raises(Unavailable):
        CloudWatchAudit(Rejecting(), group, SystemClock(), "s").write("x")


def test_the_caller_is_named_as_aws_names_it(group: str) -> None:
    assert caller().startswith("arn:aws:")
