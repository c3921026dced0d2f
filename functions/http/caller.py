"""Who calls, and what the request brings: read from API Gateway's event, version 2.0 of its payload format.

The owner is the identity that API Gateway has verified, never anything that the client says.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from functions.http.answers import refusal
from functions.http.problem import UNAUTHENTICATED, problem_of
from shared.errors import Malformed, Unavailable
from shared.intake.quota import OverQuota
from shared.trace import TRACEPARENT, read_trace, read_xray

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response

    from shared.trace import Trace

LONGEST_OWNER = 1024  # bytes; a key of DynamoDB's indexes takes 2048
LONGEST_ECHO = 40  # of a name that a client made up


def for_owner(
    app: APIGatewayHttpResolver, answered: Callable[[str, Mapping[str, Any]], Response[str]]
) -> Response[str]:
    """What the verified caller is answered: `answered` gets the owner and the event.

    Whoever brings no verified identity gets no further. A request that is malformed or over the quota, and a store that
    does not answer, become problems.
    """
    event = app.current_event.raw_event
    owner = owner_of(event)
    if owner is None:
        return refusal(UNAUTHENTICATED)
    try:
        return answered(owner, event)
    except (Malformed, Unavailable, OverQuota) as error:
        return refusal(problem_of(error))


def owner_of(event: Mapping[str, Any]) -> str | None:
    """The caller whom API Gateway's JWT authoriser, or IAM, has verified; None if nobody has, or no store takes its name."""
    owner = _verified(event)
    return owner if owner is not None and _can_be_kept(owner) else None


def _can_be_kept(owner: str) -> bool:
    try:
        return len(owner.encode()) <= LONGEST_OWNER
    except UnicodeEncodeError:  # half a surrogate pair
        return False


def _verified(event: Mapping[str, Any]) -> str | None:
    user = user_of(event)
    if user is not None:
        return (
            f"jwt:{_said(event, 'jwt', 'claims').get('iss', '')}:{user}"  # a subject is unique within its issuer alone
        )
    arn = _said(event, "iam").get("userArn")
    return f"iam:{arn}" if isinstance(arn, str) and arn else None


def _said(event: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """What the gateway's authoriser says of the caller, under these names."""
    found: Mapping[str, Any] = event
    for name in ("requestContext", "authorizer", *names):
        found = found.get(name) or {}
    return found


def user_of(event: Mapping[str, Any]) -> str | None:
    """The user whom the caller's token is about: its subject. None for callers with AWS credentials, who are no users."""
    subject = _said(event, "jwt", "claims").get("sub")
    return subject if isinstance(subject, str) and subject.strip() else None


def body_of(event: Mapping[str, Any]) -> str:
    """The body's text.

    Raises:
        Malformed: it is no text in UTF-8.
    """
    body = event.get("body") or ""
    if not event.get("isBase64Encoded"):
        return str(body)
    try:
        return base64.b64decode(body, validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise Malformed("malformed-encoding", "the body is no text in UTF-8") from error


def trace_of(event: Mapping[str, Any]) -> Trace | None:
    """The trace that the client began, or that API Gateway did; None if neither."""
    return read_trace(header_of(event, TRACEPARENT)) or read_xray(header_of(event, "x-amzn-trace-id"))


def query_of(event: Mapping[str, Any], *known: str) -> dict[str, str]:
    """The query's parameters.

    Raises:
        Malformed: one is not among those known, or stands twice; its detail names it.
    """
    found: dict[str, str] = {}
    for name, value in parse_qsl(event.get("rawQueryString") or "", keep_blank_values=True):
        if name not in known or name in found:
            rule = "given_twice" if name in found else "unknown"
            raise Malformed("invalid-query", f"{name[:LONGEST_ECHO]}: {rule}")
        found[name] = value
    return found


def header_of(event: Mapping[str, Any], name: str) -> str | None:
    """A header's value, whatever the case of its name; None if it is not there."""
    headers: Mapping[str, str] = event.get("headers") or {}
    return next((value for each, value in headers.items() if each.lower() == name.lower()), None)
