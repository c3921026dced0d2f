"""Powertools' resolver with a request of its own for each who asks.

Powertools keeps the event in an attribute of a class, one for the process, and what it knows of a request in one dictionary of the app. Of
two requests side by side one would be answered as the other's owner. Lambda gives a process one at a time; nothing here
has to rest on that.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver
from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

_EVENT: ContextVar[APIGatewayProxyEventV2] = ContextVar("event")
_CONTEXT: ContextVar[dict[str, Any]] = ContextVar("context")


class App(APIGatewayHttpResolver):
    """The resolver; `answer` instead of `resolve`."""

    @property
    def current_event(self) -> APIGatewayProxyEventV2:  # type: ignore[override]  # an attribute there
        """The event of this thread's request."""
        return _EVENT.get()

    @property
    def context(self) -> dict[str, Any]:
        """What Powertools notes of this thread's request."""
        return _CONTEXT.get()

    @context.setter
    def context(self, value: dict[str, Any]) -> None:
        _CONTEXT.set(value)

    def answer(self, event: dict[str, Any], context: Any) -> dict[str, Any]:  # noqa: ANN401 - the Lambda context
        """The answer to an event of API Gateway, in its format."""
        _EVENT.set(APIGatewayProxyEventV2(event))
        _CONTEXT.set({})
        return self.resolve(event, context)
