"""Speaks to the front door as API Gateway does: the events of `events/front_door`, changed as a test asks."""

from __future__ import annotations

import base64
import contextlib
import copy
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.world import Context

if TYPE_CHECKING:
    from collections.abc import Callable

    from functions.front_door import FrontDoor

Answer = tuple[int, Any, dict[str, str]]  # status, body as parsed JSON, headers
EVENTS = Path(__file__).resolve().parents[1] / "events" / "front_door"
ACCEPT = json.loads((EVENTS / "accept.json").read_text())
LOOK = json.loads((EVENTS / "look.json").read_text())


class Client:
    """One client for each name that is given as `user`; the stack behind the door is there for those who look at it.

    With `own` each order that somebody asks to pay for becomes that user's own before.
    """

    def __init__(self, door: FrontDoor, stack: Any = None, own: Callable[[str, str], None] | None = None) -> None:
        self.door = door
        self.stack = stack
        self.own = own

    def ask(self, event: dict[str, Any]) -> Answer:
        self._own_what_is_asked_for(event)
        answer = self.door.handle(event, Context())
        body = json.loads(answer["body"]) if answer.get("body") else None
        return answer["statusCode"], body, answer["headers"]

    def _own_what_is_asked_for(self, event: dict[str, Any]) -> None:
        """Give the order that a request is about to the user who asks."""
        with contextlib.suppress(KeyError, TypeError, ValueError, AttributeError, RecursionError):
            user = event["requestContext"]["authorizer"]["jwt"]["claims"]["sub"].strip()
            body = base64.b64decode(event["body"]) if event.get("isBase64Encoded") else event["body"]
            order = json.loads(body)["order_id"]
            if self.own is not None and user and isinstance(order, str) and order:
                self.own(order, user)

    def request(
        self, method: str, path: str, *, user: str | None = "user-1", query: str = "", **changes: Any
    ) -> Answer:
        """Any request; `changes` replace what stands in the event, `authorizer` what API Gateway says of the caller."""
        event = copy.deepcopy(LOOK)
        event["requestContext"]["http"].update(method=method, path=path)
        if "authorizer" in changes:
            event["requestContext"]["authorizer"] = changes.pop("authorizer")
        else:
            as_user(event, user)
        event.update(rawPath=path, rawQueryString=query, **changes)
        return self.ask(event)

    def post(
        self,
        body: Any,
        *,
        key: str | None = "k",
        job_type: str = "capture-payment",
        user: str | None = "user-1",
        **changes: Any,
    ) -> Answer:
        headers = {} if key is None else {"Idempotency-Key": key}
        text = body if isinstance(body, str) else json.dumps(body)
        return self.request(
            "POST", f"/operations/{job_type}", user=user, **{"body": text, "headers": headers, **changes}
        )

    def get(self, operation_id: str, *, user: str | None = "user-1") -> Answer:
        return self.request("GET", f"/operations/{operation_id}", user=user)

    def delete(self, operation_id: str, *, user: str | None = "user-1") -> Answer:
        return self.request("DELETE", f"/operations/{operation_id}", user=user)

    def list(self, query: str = "", *, user: str | None = "user-1") -> Answer:
        return self.request("GET", "/operations", user=user, query=query)


def as_user(event: dict[str, Any], user: str | None) -> dict[str, Any]:
    if user is None:
        event["requestContext"].pop("authorizer", None)
    else:
        event["requestContext"]["authorizer"]["jwt"]["claims"]["sub"] = user
    return event


def payload(order: str) -> dict[str, str]:
    return {"order_id": order, "payment_intent_id": f"pi_ok_{order}"}
