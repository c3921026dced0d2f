"""What the front door sends back: an answer or a refusal as JSON, with the headers that every answer has.

It knows no route and nobody's business.
"""

from __future__ import annotations

import json
import math
from http import HTTPStatus
from typing import TYPE_CHECKING

from aws_lambda_powertools.event_handler import Response

if TYPE_CHECKING:
    from collections.abc import Mapping

    from functions.http.problem import Problem

JSON = "application/json"
PROBLEM = "application/problem+json"
# Nothing on the way may keep an answer, or guess what it is; a body that is only read by programs loads and frames nothing.
HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Strict-Transport-Security": "max-age=31536000",
}


def answer(
    body: Mapping[str, object],
    headers: Mapping[str, str] | None = None,
    *,
    status: HTTPStatus = HTTPStatus.OK,
    kind: str = JSON,
) -> Response[str]:
    """An answer with a body; `headers` come on top of those that every answer has, or replace them."""
    return Response(status.value, kind, json.dumps(body, ensure_ascii=False), {**HEADERS, **(headers or {})})


def written_answer(
    body: str | None, headers: Mapping[str, str], *, status: HTTPStatus = HTTPStatus.OK
) -> Response[str]:
    """An answer whose body is JSON already; without one for what the client has."""
    return Response(status.value, None if body is None else JSON, body, {**HEADERS, **headers})


def refusal(problem: Problem) -> Response[str]:
    """A problem as an answer."""
    headers: dict[str, str] = {}
    if problem.retry_after is not None:
        headers["Retry-After"] = str(max(1, math.ceil(problem.retry_after.total_seconds())))
    if problem.status is HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"  # RFC 9110 demands it, and the gateway's own refusals say it
    return answer(problem.body, headers, status=problem.status, kind=PROBLEM)
