"""What an error says about a later attempt.

It never imports the libraries whose errors it reads: it knows them by shape, so that a function which does not use a library does
not load it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from shared.errors import Ambiguous, Conflict, DeadLetter, Malformed, Refused, Rejected, RetryLater, Unavailable

if TYPE_CHECKING:
    from datetime import timedelta

TOO_MANY_REQUESTS = 429
REQUEST_TIMEOUT = 408
SERVER_ERRORS = 500


class Kind(StrEnum):
    """What an error says about a later attempt."""

    TRANSIENT = "transient"  # may well succeed
    PERMANENT = "permanent"  # cannot succeed
    UNKNOWN = "unknown"  # a bug or something not thought of: few attempts


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an error means: its kind, the wait it asks for, and the dependency that failed, where it names one."""

    kind: Kind
    after: timedelta | None = None
    dependency: str | None = None


def classify(error: BaseException) -> Verdict:
    """Tell whether a later attempt can help after `error`."""
    match error:
        case RetryLater():
            return Verdict(Kind.TRANSIENT, error.after)
        case Unavailable():
            return Verdict(Kind.TRANSIENT, error.after, error.dependency)
        case Ambiguous():
            return Verdict(Kind.TRANSIENT, dependency=error.dependency)
        case Conflict():
            return Verdict(Kind.TRANSIENT)
        case Rejected():
            return Verdict(Kind.PERMANENT, dependency=error.dependency)
        case DeadLetter() | Malformed() | Refused():
            return Verdict(Kind.PERMANENT)
        case TimeoutError() | ConnectionError():
            return Verdict(Kind.TRANSIENT)
        case _:
            return _classify_by_shape(error)


def classify_status(status: int) -> Kind:
    """What an HTTP status says about a later attempt."""
    if status in {REQUEST_TIMEOUT, TOO_MANY_REQUESTS} or status >= SERVER_ERRORS:
        return Kind.TRANSIENT
    return Kind.PERMANENT


# Error codes of AWS services that a later attempt can cure although their HTTP status is 400; the next deploy cures a
# missing permission, and dead-lettering a whole queue for it cures nothing.
TRANSIENT_AWS_CODES = frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        "BandwidthLimitExceeded",
        "EC2ThrottledException",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "KMSThrottlingException",
        "KmsThrottled",
        "LimitExceededException",
        "OverLimit",
        "PriorRequestNotComplete",
        "ProvisionedThroughputExceededException",
        "RequestExpired",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "RequestTimeTooSkewed",
        "RequestTimeout",
        "RequestTimeoutException",
        "ResourceConflictException",
        "ResourceInUseException",
        "SignatureDoesNotMatch",
        "SlowDown",
        "ThrottledException",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
        "TransactionConflictException",
        "TransactionInProgressException",
        "UnrecognizedClientException",
        "ExpiredToken",
        "ExpiredTokenException",
    }
)
# The connection or its answer failed: botocore, urllib3, http.client and redis name these classes so.
TRANSIENT_CLASSES = frozenset(
    {
        "ConnectTimeoutError",
        "ConnectionClosedError",
        "ConnectionError",
        "EndpointConnectionError",
        "HTTPClientError",
        "IncompleteRead",
        "MaxRetryError",
        "NewConnectionError",
        "ProtocolError",
        "ProxyConnectionError",
        "ReadTimeoutError",
        "RemoteDisconnected",
        "SSLError",
        "TimeoutError",
    }
)
LIBRARIES = ("botocore", "boto3", "urllib3", "http", "requests", "httpx", "redis")


def _classify_by_shape(error: BaseException) -> Verdict:
    root = type(error).__module__.partition(".")[0]
    if root == "pydantic_core" and type(error).__name__ == "ValidationError":
        return Verdict(Kind.PERMANENT)
    if root in {"botocore", "boto3"} and isinstance(response := getattr(error, "response", None), dict):
        code = str(response.get("Error", {}).get("Code", "")).rpartition(".")[2]  # SQS puts its own name before some
        code_status = int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0) or 0)
        service = getattr(error, "operation_name", None)
        if code in TRANSIENT_AWS_CODES:
            return Verdict(Kind.TRANSIENT, dependency=service)
        return Verdict(classify_status(code_status) if code_status else Kind.UNKNOWN, dependency=service)
    if root in LIBRARIES and any(base.__name__ in TRANSIENT_CLASSES for base in type(error).__mro__):
        return Verdict(Kind.TRANSIENT)
    status = getattr(getattr(error, "response", None), "status_code", None)
    if root in LIBRARIES and isinstance(status, int):
        return Verdict(classify_status(status))
    return Verdict(Kind.UNKNOWN)
