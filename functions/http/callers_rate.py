"""How often one owner may ask, over all machines: before any route is taken, and before anything is read or written.

Redis gone lets everybody in, and is counted: the gateway's own limit on all clients together is then the only bound.
"""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import TYPE_CHECKING

from functions.http.answers import refusal
from functions.http.caller import owner_of
from functions.http.problem import too_many_requests
from shared.errors import CacheUnavailable
from shared.telemetry import NO_JOB_TYPE

if TYPE_CHECKING:
    from collections.abc import Callable

    from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response

    from shared.rate import Rate, Rates
    from shared.telemetry import Telemetry

    Next = Callable[[APIGatewayHttpResolver], Response[str]]


def keep_rate(app: APIGatewayHttpResolver, rates: Rates, rate: Rate, telemetry: Telemetry) -> None:
    """Put the rate before all routes of the app."""

    def within_rate(app: APIGatewayHttpResolver, next_middleware: Next) -> Response[str]:
        owner = owner_of(app.current_event.raw_event)
        if owner is None:
            return next_middleware(app)  # which refuses it
        try:
            wait = rates.take(_name_of(owner), rate)
        except CacheUnavailable:
            telemetry.count("rate_unavailable", NO_JOB_TYPE)
            wait = timedelta(0)
        if wait > timedelta(0):
            telemetry.count("rate_exceeded", NO_JOB_TYPE)
            return refusal(too_many_requests(wait))
        return next_middleware(app)

    app.use([within_rate])


def _name_of(owner: str) -> str:
    """What stands in Redis: nothing that tells who somebody is."""
    return f"owner/{hashlib.sha256(owner.encode()).hexdigest()[:32]}"
