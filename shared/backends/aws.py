"""Clients of AWS services: made by this factory and no other way, with timeouts; their errors become ours.

A client is made when it is first needed, never at import, so that a test or the local stage decides where it talks to.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, ConnectionError, HTTPClientError  # noqa: A004
from botocore.session import get_session

from shared.classification import Kind, classify
from shared.errors import Refused, StoreUnavailable, Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

# Fail fast: a job is worth more than one slow call, and every write here may be repeated (conditions and tokens).
CONNECT_SECONDS = 1.0
READ_SECONDS = 2.0
# The services check each request. botocore would first, value by value, for as much as its signature costs; tests have it do so.
CHECKED = False
STORES = frozenset({"dynamodb", "s3"})  # what attempts read and write; that one is away costs no job an attempt
ATTEMPTS = 3  # in all; the only layer that repeats an AWS call
REFUSALS = frozenset(
    {
        "InvalidMessageContents",
        "InvalidParameterValue",
        "InvalidParameterValueException",
        "ItemCollectionSizeLimitExceededException",
        "MessageNotInflight",
        "MissingParameter",
        "ReceiptHandleIsInvalid",
        "ValidationException",
        "BatchRequestTooLong",
    }
)


def client(service: str, *, pool: int = 10, read_seconds: float = READ_SECONDS, attempts: int = ATTEMPTS) -> Any:  # noqa: ANN401 - boto3 builds the class at run time
    """Make a client of an AWS service, safe to share between threads.

    Args:
        service: as boto3 calls it.
        pool: connections kept, as many as threads use it.
        read_seconds: that an attempt waits for its answer.
        attempts: in all; between two the client rests for a second at the most, and twice as long each time.
    """
    config = Config(
        connect_timeout=CONNECT_SECONDS,
        read_timeout=read_seconds,
        retries={"mode": "standard", "total_max_attempts": attempts},
        max_pool_connections=max(pool, 10),
        parameter_validation=CHECKED,
    )
    return get_session().create_client(service, config=config)


@contextlib.contextmanager
def translated(service: str) -> Iterator[None]:
    """Raise our errors for AWS's: Unavailable where a later try can help, Refused where the value is at fault.

    Raises:
        Unavailable: no answer, throttled, or failed on their side; StoreUnavailable of a store.
        Refused: the service refuses the value.
    """
    try:
        yield
    except ClientError as error:
        code = code_of(error)
        if code in REFUSALS:
            message = f"{service} refuses it ({code})."
            raise Refused(message) from error
        if classify(error).kind is Kind.TRANSIENT:
            message = f"{service} cannot do it now ({code})."
            raise _unavailable(message, service) from error
        raise
    except (ConnectionError, HTTPClientError) as error:
        message = f"{service} gave no answer ({type(error).__name__})."
        raise _unavailable(message, service) from error
    except BotoCoreError as error:
        if classify(error).kind is Kind.TRANSIENT:
            message = f"{service} gave no answer ({type(error).__name__})."
            raise _unavailable(message, service) from error
        raise


def code_of(error: ClientError) -> str:
    """The error's code, without the name that SQS puts before some."""
    return str(error.response.get("Error", {}).get("Code", "")).rpartition(".")[2]


def _unavailable(message: str, service: str) -> Unavailable:
    """The error of a service that may do it later. A dependency may be declared under the same name: the class tells them apart."""
    kind = StoreUnavailable if service in STORES else Unavailable
    return kind(message, dependency=service)
