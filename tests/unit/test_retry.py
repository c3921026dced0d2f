"""Errors sorted into transient, permanent and unknown; waits with full jitter."""

from __future__ import annotations

import http.client
from datetime import timedelta
from random import Random
from types import SimpleNamespace

import botocore.exceptions
import pydantic
import pytest
import redis.exceptions
import urllib3.exceptions

from shared.errors import Ambiguous, Conflict, DeadLetter, Malformed, Refused, Rejected, RetryLater, Unavailable
from shared.retry import Kind, Retry, Verdict, classify

TRANSIENT, PERMANENT, UNKNOWN = Kind.TRANSIENT, Kind.PERMANENT, Kind.UNKNOWN


def client_error(code: str, status: int) -> botocore.exceptions.ClientError:
    response = {"Error": {"Code": code, "Message": "m"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return botocore.exceptions.ClientError(response, "PutItem")  # type: ignore[arg-type]


class HTTPStatusError(Exception):
    """As HTTP libraries raise for a status."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.response = SimpleNamespace(status_code=status)


HTTPStatusError.__module__ = "requests.exceptions"


def validation_error() -> pydantic.ValidationError:
    with pytest.raises(pydantic.ValidationError) as caught:
        pydantic.TypeAdapter(int).validate_python("x")
    return caught.value


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (client_error("ThrottlingException", 400), TRANSIENT),
        (client_error("ProvisionedThroughputExceededException", 400), TRANSIENT),
        (client_error("InternalServerError", 500), TRANSIENT),
        (client_error("OverLimit", 403), TRANSIENT),
        (client_error("AWS.SimpleQueueService.OverLimit", 400), TRANSIENT),
        (client_error("AccessDeniedException", 400), TRANSIENT),
        (client_error("ResourceNotFoundException", 400), PERMANENT),
        (client_error("Strange", 0), UNKNOWN),
        (botocore.exceptions.ReadTimeoutError(endpoint_url="u"), TRANSIENT),
        (botocore.exceptions.EndpointConnectionError(endpoint_url="u"), TRANSIENT),
        (botocore.exceptions.ConnectionClosedError(endpoint_url="u"), TRANSIENT),
        (botocore.exceptions.ParamValidationError(report="r"), UNKNOWN),
        (urllib3.exceptions.ReadTimeoutError(None, "/", "m"), TRANSIENT),  # type: ignore[arg-type]
        (urllib3.exceptions.ProtocolError("m"), TRANSIENT),
        (http.client.RemoteDisconnected("closed"), TRANSIENT),
        (redis.exceptions.ConnectionError(), TRANSIENT),
        (redis.exceptions.TimeoutError(), TRANSIENT),
        (redis.exceptions.ResponseError(), UNKNOWN),
        (HTTPStatusError(429), TRANSIENT),
        (HTTPStatusError(503), TRANSIENT),
        (HTTPStatusError(404), PERMANENT),
        (TimeoutError(), TRANSIENT),
        (ConnectionResetError(), TRANSIENT),
        (validation_error(), PERMANENT),
        (Unavailable("m", dependency="d"), TRANSIENT),
        (Ambiguous("m", dependency="d"), TRANSIENT),
        (Rejected("m", dependency="d", status=400), PERMANENT),
        (Conflict(), TRANSIENT),
        (RetryLater("m"), TRANSIENT),
        (DeadLetter("m"), PERMANENT),
        (Malformed("r", "d"), PERMANENT),
        (Refused(), PERMANENT),
        (KeyError("k"), UNKNOWN),
        (ValueError("v"), UNKNOWN),
    ],
    ids=lambda value: value.value if isinstance(value, Kind) else type(value).__name__,
)
def test_an_error_is_sorted_by_what_a_later_attempt_can_do(error: Exception, kind: Kind) -> None:
    assert classify(error).kind is kind


def test_a_dependency_and_its_wait_are_taken_from_the_error() -> None:
    error = Unavailable("429", dependency="shop", after=timedelta(seconds=9))
    assert classify(error) == Verdict(TRANSIENT, timedelta(seconds=9), "shop")


def test_waits_double_up_to_the_cap_and_are_spread_over_all_of_it() -> None:
    retry = Retry(base=timedelta(seconds=10), cap=timedelta(minutes=1))
    random = Random(1)  # noqa: S311 - repeatable
    for attempt, ceiling in ((1, 10), (2, 20), (3, 40), (4, 60), (90, 60)):
        waits = [retry.wait(attempt, random).total_seconds() for _ in range(2000)]
        assert 0 < min(waits) < ceiling * 0.05
        assert ceiling * 0.95 < max(waits) <= ceiling
        tenth = sum(wait <= ceiling / 10 for wait in waits)
        assert 120 < tenth < 280  # a tenth of 2000, give or take


def test_the_longest_strategy_has_a_wait_too() -> None:
    retry = Retry(max_attempts=100, base=timedelta(hours=1), cap=timedelta(hours=12))
    assert timedelta(0) < retry.wait(100, Random(1)) <= timedelta(hours=12)  # noqa: S311 - repeatable


def test_a_permanent_error_has_one_attempt_and_an_unknown_one_few() -> None:
    retry = Retry(max_attempts=5, unknown_attempts=3)
    assert [retry.attempts_for(kind) for kind in (TRANSIENT, UNKNOWN, PERMANENT)] == [5, 3, 1]
    assert Retry(max_attempts=2).attempts_for(UNKNOWN) == 2
