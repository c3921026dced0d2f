"""Problem details (RFC 9457): how the front door says no. What it says names fields and rules, never values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING

from shared.errors import Malformed, Unavailable
from shared.intake.quota import OverQuota
from shared.intake.request import Absent, OtherPayloadForKey, TooLarge, UnknownJobType

if TYPE_CHECKING:
    from collections.abc import Mapping

COME_AGAIN = timedelta(seconds=2)
SOME_HAVE_ENDED = timedelta(seconds=10)
# What a client's text is that cannot even be read; everything else that is malformed can be read and is wrong.
UNREADABLE = frozenset(
    {
        "malformed-json",
        "malformed-encoding",
        "missing-idempotency-key",
        "invalid-idempotency-key",
        "invalid-query",
        "invalid-etag",
    }
)
FIELD_BY_FIELD = frozenset({"invalid-payload", "invalid-query"})


@dataclass(frozen=True, slots=True)
class Problem:
    """A refusal.

    Attributes:
        code: stable, for programs.
        detail: for people; None where the title says it all.
        errors: of a payload or a query, one for each field: its path and the rule it breaks.
        retry_after: when the same request may be sent again.
    """

    status: HTTPStatus
    code: str
    detail: str | None = None
    errors: tuple[Mapping[str, str], ...] = ()
    retry_after: timedelta | None = None

    @property
    def body(self) -> dict[str, object]:
        """As `application/problem+json`."""
        body: dict[str, object] = {"title": self.status.phrase, "status": self.status.value, "code": self.code}
        if self.detail is not None:
            body["detail"] = self.detail
        if self.errors:
            body["errors"] = list(self.errors)
        return body


NOT_FOUND = Problem(HTTPStatus.NOT_FOUND, "not-found")
HAS_BEGUN = Problem(
    HTTPStatus.CONFLICT, "begun", "it has begun, and may have done what cannot be taken back: look how it ends"
)
OUTDATED = Problem(
    HTTPStatus.PRECONDITION_FAILED,
    "outdated",
    "what the request is about has changed since, or is not there: read it again",
)
HAS_ENDED = Problem(HTTPStatus.CONFLICT, "ended", "the operation has ended; nothing is left to cancel")
UNAUTHENTICATED = Problem(HTTPStatus.UNAUTHORIZED, "unauthenticated", "the request carries no verified identity")

BROKEN = Problem(HTTPStatus.INTERNAL_SERVER_ERROR, "broken", "a fault of ours; the same request may be sent again")
OVER_QUOTA = Problem(
    HTTPStatus.TOO_MANY_REQUESTS,
    "too-many-unfinished",
    "wait for some of your operations to end, or cancel them; the same request may then be sent again",
    retry_after=SOME_HAVE_ENDED,
)


def too_many_requests(wait: timedelta) -> Problem:
    """The caller has to wait so long before it may ask anything."""
    return Problem(HTTPStatus.TOO_MANY_REQUESTS, "too-many-requests", "ask less often", retry_after=wait)


def problem_of(error: Malformed | Unavailable | OverQuota) -> Problem:
    """What a refused request is told."""
    match error:
        case Unavailable(after=after):
            return Problem(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "try-again",
                "nothing is lost: the same request with the same key may be sent again",
                retry_after=after or COME_AGAIN,
            )
        case OverQuota():
            return OVER_QUOTA
        case Absent():
            return NOT_FOUND
        case UnknownJobType():
            return Problem(HTTPStatus.NOT_FOUND, error.reason, error.detail)
        case TooLarge():
            return Problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, error.reason, error.detail)
        case OtherPayloadForKey():
            return Problem(HTTPStatus.UNPROCESSABLE_ENTITY, error.reason, error.detail)
    status = HTTPStatus.BAD_REQUEST if error.reason in UNREADABLE else HTTPStatus.UNPROCESSABLE_ENTITY
    errors = tuple(_fields(error.detail)) if error.reason in FIELD_BY_FIELD else ()
    return Problem(status, error.reason, None if errors else error.detail, errors)


def _fields(detail: str) -> list[dict[str, str]]:
    """The fields that a refusal names (see `describe` in shared/payload.py)."""
    found = []
    for part in detail.split("; "):
        field, _, rule = part.partition(": ")
        found.append({"field": field, "rule": rule})
    return found
