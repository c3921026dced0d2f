"""An HTTP API on one machine: turns HTTP into API Gateway's events (payload format 2.0) and a function's answers into HTTP.

It does what stands between a client and the function on AWS and nothing more: it knows the routes, verifies the token, and
refuses in the gateway's own words what does not get through.
"""

from __future__ import annotations

import base64
import json
import re
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote, urlsplit

from local.outside.tokens import Issuer, Unverified, stringified

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from functions.http.routes import Route

HOST = "127.0.0.1"
MOST_BYTES = 10 * 1024 * 1024  # of a request, by API Gateway's quota
TEXT = re.compile(r"text/|application/(json|javascript|xml)\b|[^;]*\+(json|xml)\b")
LEFT = 8000  # milliseconds that the function says it has


@dataclass(frozen=True, slots=True)
class Call:
    """The Lambda context of one request."""

    aws_request_id: str
    function_name: str = "front-door"

    @staticmethod
    def get_remaining_time_in_millis() -> int:
        """As much as the deployed function has."""
        return LEFT


class HttpApi(ThreadingHTTPServer):
    """Serves a function's handler; `serve_forever` in a thread of the caller's."""

    daemon_threads = True

    def __init__(
        self,
        port: int,
        *,
        handler: Callable[[dict[str, Any], Call], dict[str, Any]],
        routes: Iterable[Route],
        issuer: Issuer,
    ) -> None:
        """Listen on a port of this machine; 0 takes a free one."""
        super().__init__((HOST, port), _Request)
        self.handler = handler
        self.issuer = issuer
        self.routes = [(route, re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", route.path))) for route in routes]

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://{HOST}:{self.server_port}"

    def route_of(self, method: str, path: str) -> tuple[Route, dict[str, str]] | None:
        """The route of a request and what its parameters are; one without parameters wins."""
        found = [(route, match) for route, pattern in self.routes if (match := pattern.fullmatch(path))]
        fitting = sorted(
            (pair for pair in found if pair[0].method == method), key=lambda pair: len(pair[1].groupdict())
        )
        return (fitting[0][0], fitting[0][1].groupdict()) if fitting else None


class _Request(BaseHTTPRequestHandler):
    server: HttpApi
    protocol_version = "HTTP/1.1"
    timeout = 30

    def _answer(self) -> None:
        """Answer one request, whatever its method."""
        parts = urlsplit(self.path)
        path = unquote(parts.path)  # HTTP APIs hand the path on decoded; the query stays as it was sent
        body = self._body()
        if body is None:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "Request Entity Too Large")
            return
        found = self.server.route_of(self.command, path)
        if found is None:
            self._refuse(HTTPStatus.NOT_FOUND, "Not Found")
            return
        route, parameters = found
        try:
            claims = self.server.issuer.verify(self._token())
        except Unverified:
            self._refuse(HTTPStatus.UNAUTHORIZED, "Unauthorized", **{"www-authenticate": "Bearer"})
            return
        event = self._event(route, path, parts.query, body)
        event["requestContext"]["authorizer"] = {"jwt": {"claims": stringified(claims), "scopes": None}}
        if parameters:
            event["pathParameters"] = parameters
        try:
            answer = self.server.handler(event, Call(event["requestContext"]["requestId"]))
        except Exception:  # noqa: BLE001 - a function that fails, as the gateway sees it
            self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, "Internal Server Error")
            return
        text = answer.get("body") or ""
        content = base64.b64decode(text) if answer.get("isBase64Encoded") else text.encode()
        self._send(answer["statusCode"], answer.get("headers") or {}, content)

    def __getattr__(self, name: str) -> Callable[[], None]:
        """Any method of HTTP is answered alike: the base class looks for `do_` and the method's name."""
        if name.startswith("do_"):
            return self._answer
        raise AttributeError(name)

    def _body(self) -> bytes | None:
        """What was sent; None if it is too much."""
        length = self.headers.get("Content-Length", "0")
        if not length.isdecimal() or int(length) > MOST_BYTES:
            self.close_connection = True
            return None
        return self.rfile.read(int(length))

    def _token(self) -> str:
        return re.sub("^bearer ", "", self.headers.get("Authorization", "").strip(), flags=re.IGNORECASE)

    def _event(self, route: Route, path: str, query: str, body: bytes) -> dict[str, Any]:
        headers: dict[str, str] = {}
        for name, value in self.headers.items():
            name = name.lower()  # noqa: PLW2901 - as the gateway does
            headers[name] = f"{headers[name]},{value}" if name in headers else value
        now = datetime.now(UTC)
        event: dict[str, Any] = {
            "version": "2.0",
            "routeKey": str(route),
            "rawPath": path,
            "rawQueryString": query,
            "headers": headers,
            "requestContext": {
                "accountId": "000000000000",
                "apiId": "local",
                "domainName": HOST,
                "domainPrefix": "local",
                "http": {
                    "method": self.command,
                    "path": path,
                    "protocol": self.request_version,
                    "sourceIp": self.client_address[0],
                    "userAgent": headers.get("user-agent", ""),
                },
                "requestId": uuid.uuid4().hex,
                "routeKey": str(route),
                "stage": "$default",
                "time": now.strftime("%d/%b/%Y:%H:%M:%S +0000"),
                "timeEpoch": int(now.timestamp() * 1000),
            },
            "isBase64Encoded": False,
        }
        if pairs := parse_qsl(query, keep_blank_values=True):
            together: dict[str, str] = {}
            for name, value in pairs:
                together[name] = f"{together[name]},{value}" if name in together else value
            event["queryStringParameters"] = together
        if body:
            event.update(_encoded(body, headers.get("content-type", "")))
        return event

    def _refuse(self, status: HTTPStatus, message: str, **headers: str) -> None:
        self._send(status, {"content-type": "application/json", **headers}, json.dumps({"message": message}).encode())

    def _send(self, status: int, headers: dict[str, str], content: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, str(value))
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the name of the base class
        """Say nothing: the function does its own logging."""


def _encoded(body: bytes, kind: str) -> dict[str, object]:
    """A body as text where its type is one, else in base64."""
    try:
        if TEXT.match(kind.strip().lower()):
            return {"body": body.decode(), "isBase64Encoded": False}
    except UnicodeDecodeError:
        pass
    return {"body": base64.b64encode(body).decode(), "isBase64Encoded": True}
