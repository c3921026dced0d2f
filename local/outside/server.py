"""What the stand-ins of outside systems share: a server on loopback, steps that tell how a request is treated, JSON answers.

It knows no system: which steps a request meets, and what there is to tell, is each stand-in's own affair.
"""

from __future__ import annotations

import json
import select
from dataclasses import dataclass, field
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from http import HTTPStatus

LONGEST_HOLD = timedelta(seconds=60)
LARGEST_BODY = 64 * 1024


@dataclass(frozen=True, slots=True)
class Step:
    """How one request is treated.

    Attributes:
        status: answered instead of doing what is asked; None does it.
        code: of the refusal, in the answer's body.
        headers: sent along with the refusal.
        delay: wait before the answer.
        answers: whether an answer comes at all; without one the request is held until the client gives up.
        kills: whether the client's process is killed instead of an answer.
    """

    status: int | None = None
    code: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: timedelta = timedelta(0)
    answers: bool = True
    kills: bool = False


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What the first requests for one thing meet, one step each; all later ones meet `then`."""

    first: tuple[Step, ...] = ()
    then: Step = field(default_factory=Step)

    def step(self, seen: int) -> Step:
        """What a request meets that comes after so many others."""
        return self.first[seen] if seen < len(self.first) else self.then


UNAVAILABLE = Step(status=503, code="unavailable")
LIMITED = Step(status=429, code="rate_limited", headers={"Retry-After": "3"})


def fields_of(body: bytes, fields: Mapping[str, type]) -> dict[str, Any] | None:
    """The fields of a JSON object, in the order given; None unless they are these, each of its kind, and none is an empty text."""
    try:
        parsed = json.loads(body)
    except ValueError:
        return None
    if not isinstance(parsed, dict) or parsed.keys() != fields.keys():
        return None
    fits = all(type(parsed[name]) is kind and parsed[name] != "" for name, kind in fields.items())
    return {name: parsed[name] for name in fields} if fits else None


class OutsideServer(ThreadingHTTPServer):
    """A server on loopback; a quiet one tells neither of requests nor of clients that go away."""

    daemon_threads = True

    def __init__(self, port: int, handler: type[OutsideHandler], *, quiet: bool = False) -> None:
        super().__init__(("127.0.0.1", port), handler)
        self.quiet = quiet

    def handle_error(self, request: object, client_address: object) -> None:
        """Tell of a fault; clients that go away are the daily bread of a quiet one."""
        if not self.quiet:
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class OutsideHandler(BaseHTTPRequestHandler):
    """One connection of a client."""

    protocol_version = "HTTP/1.1"
    timeout = 120

    def hold(self) -> None:
        """Say nothing until the client has hung up."""
        select.select([self.connection], [], [], LONGEST_HOLD.total_seconds())
        self.close_connection = True

    def answer(self, status: HTTPStatus, body: Mapping[str, object], headers: Mapping[str, str] | None = None) -> None:
        """Send a status and a JSON body."""
        content = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {
            "Content-Type": "application/json",
            "Content-Length": str(len(content)),
            **(headers or {}),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the name that http.server has for it
        """Tell of a request, unless the server is quiet."""
        if not (isinstance(self.server, OutsideServer) and self.server.quiet):
            super().log_message(format, *arguments)
