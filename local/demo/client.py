"""A client of the front door: its requests as values, and what it is answered. It knows no situation."""

from __future__ import annotations

import http.client
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from local.outside.tokens import Issuer, private_key
from local.processes.environment import loopback

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import timedelta

TIMEOUT = 30.0  # seconds, as long as API Gateway waits; a function's first start takes some of them on a busy machine


class Bearer(StrEnum):
    """Whose token a request brings."""

    OWN = "own"
    STRANGERS = "strangers"  # of another user
    FORGED = "forged"  # signed by a key that only says that it is the issuer's
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Request:
    """One request.

    Attributes:
        user: who makes it.
        path: `{operation}` in it becomes the id of the operation that this user was given first in the situation.
        key: idempotency key.
        payload: the JSON body.
        run_in: how much later the job is to run.
        bearer: whose token it brings.
        copies: how many of it are made at the same moment.
    """

    method: str
    path: str
    user: str
    key: str | None = None
    payload: Mapping[str, str] | None = None
    run_in: timedelta | None = None
    bearer: Bearer = Bearer.OWN
    copies: int = 1


@dataclass(frozen=True, slots=True)
class Answer:
    """What a request was answered; 0 stands for no answer."""

    status: int
    body: Mapping[str, Any] = field(default_factory=dict)
    etag: str | None = None
    is_replay: bool = False

    @property
    def code(self) -> str | None:
        """Of a refusal."""
        code = self.body.get("code")
        return code if isinstance(code, str) else None

    @property
    def operation(self) -> str | None:
        """The id of the operation that it is about."""
        found = self.body.get("operation_id")
        return found if isinstance(found, str) else None


class Client:
    """Makes requests to one API with tokens of one issuer. Safe to use from many threads."""

    def __init__(self, api: str, issuer: Issuer) -> None:
        self._api = urlsplit(loopback(api))
        self._issuer = issuer
        self._forger = replace(issuer, key=private_key())

    def make(self, request: Request, operation: str | None = None) -> list[Answer]:
        """Make a request, all its copies at once, and give each answer."""
        with ThreadPoolExecutor(request.copies) as pool:
            return list(pool.map(lambda _: self._make(request, operation), range(request.copies)))

    def get(self, user: str, path: str) -> Answer:
        """Read something as a user."""
        return self._make(Request("GET", path, user), None)

    def _make(self, request: Request, operation: str | None) -> Answer:
        path = f"{self._api.path}{request.path.replace('{operation}', operation or 'none')}"
        if request.run_in is not None:
            moment = self._issuer.clock.now() + request.run_in
            path += f"?run_at={quote(moment.isoformat())}"
        body = None if request.payload is None else json.dumps(request.payload)
        connection = http.client.HTTPConnection(self._api.hostname or "", self._api.port, timeout=TIMEOUT)
        try:
            connection.request(request.method, path, body, self._headers(request))
            answered = connection.getresponse()
            return _read(answered.status, answered.read(), dict(answered.getheaders()))
        except (OSError, http.client.HTTPException):
            return Answer(0)
        finally:
            connection.close()

    def _headers(self, request: Request) -> dict[str, str]:
        headers = {"Content-Type": "application/json"}
        if request.key is not None:
            headers["Idempotency-Key"] = request.key
        if (token := self._token(request)) is not None:
            headers["Authorization"] = f"Bearer {token}"
        return headers

    def _token(self, request: Request) -> str | None:
        match request.bearer:
            case Bearer.OWN:
                return self._issuer.token(request.user)
            case Bearer.STRANGERS:
                return self._issuer.token(f"not-{request.user}")
            case Bearer.FORGED:
                return self._forger.token(request.user)
            case Bearer.NONE:
                return None


def first_operation(answers: Sequence[Answer]) -> str | None:
    """The first operation that was accepted."""
    return next((answer.operation for answer in answers if answer.status == http.client.ACCEPTED), None)


def _read(status: int, content: bytes, headers: Mapping[str, str]) -> Answer:
    named = {name.lower(): value for name, value in headers.items()}
    try:
        body = json.loads(content) if content else {}
    except ValueError:
        body = {}
    is_replay = named.get("idempotent-replayed") == "true"
    return Answer(status, body if isinstance(body, dict) else {}, named.get("etag"), is_replay)
