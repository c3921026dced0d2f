"""Errors sorted into transient, permanent and unknown."""

from __future__ import annotations

import http.client
from datetime import timedelta
from types import SimpleNamespace

import botocore.exceptions
import pydantic
import pytest
import redis.exceptions
import urllib3.exceptions

from shared.classification import Kind, Verdict, classify
from shared.errors import Ambiguous, Conflict, DeadLetter, Malformed, Refused, Rejected, RetryLater, Unavailable

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
