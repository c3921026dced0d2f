"""The outside notification service's API: a notice is sent once for each key, whatever the number of requests."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, Field, ValidationError

from shared.dependency import Dependency
from shared.errors import Ambiguous, Rejected, Unavailable
from shared.gate import CircuitBreaker, RetryBudget
from shared.rate import Rate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shared.unit_of_work import UnitOfWork

NOTIFICATION_SERVICE = Dependency(
    "notification-service",
    timeout=timedelta(seconds=10),
    rate=Rate(20),
    retries=RetryBudget(),
    breaker=CircuitBreaker(),
)
CREATED, OK, NOT_FOUND, IN_PROGRESS = 201, 200, 404, 409


class Notice(BaseModel):
    """A notice that was sent, now or by an earlier request with its key."""

    notice_id: Annotated[str, Field(min_length=1, max_length=200)]


def send_notice(work: UnitOfWork, key: str, body: Mapping[str, object]) -> Notice | None:
    """Send a notice, once for its key; None if the service does not know its recipient.

    Raises:
        Unavailable: no answer, or none that makes sense. It may have been sent: the same key sends it no second time.
        Rejected: the service refuses it for good.
    """
    try:
        reply = work.call(NOTIFICATION_SERVICE, "POST", "/v1/notices", body=body, headers={"Idempotency-Key": key})
    except Ambiguous as error:
        raise Unavailable(str(error), dependency=NOTIFICATION_SERVICE.name) from error
    if reply.status == NOT_FOUND:
        return None
    if reply.status == IN_PROGRESS:
        message = "The notification service is still at an earlier request with this key."
        raise Unavailable(message, dependency=NOTIFICATION_SERVICE.name)
    if reply.status not in {CREATED, OK}:
        message = f"The notification service answered {reply.status} to a notice."
        raise Rejected(message, dependency=NOTIFICATION_SERVICE.name, status=reply.status)
    try:
        return Notice.model_validate(reply.body)
    except ValidationError as error:
        message = f"The notification service answered {reply.status} with a body that is not what it documents."
        raise Unavailable(message, dependency=NOTIFICATION_SERVICE.name) from error
