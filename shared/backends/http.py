"""Dependencies over HTTP, by urllib3: one request, bounded in time, its failure sorted into what surely and what maybe happened."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

import urllib3
from urllib3.exceptions import ConnectTimeoutError, HTTPError, NewConnectionError

from shared.dependency import Reply
from shared.errors import Ambiguous, SettingsError, Unavailable
from shared.limits import LONGEST_HIDDEN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shared.clock import Clock
    from shared.dependency import Dependency

LARGEST_ANSWER = 1024 * 1024
NOT_DONE = frozenset({429, 503})
REQUEST_TIMEOUT = 408
SERVER_ERRORS = 500
CHUNK = 64 * 1024


def _pool() -> urllib3.PoolManager:
    return urllib3.PoolManager(num_pools=4, maxsize=20, retries=False)


@dataclass(frozen=True, slots=True)
class HttpTransport:
    """Sends requests to dependencies at the base URLs of the stage."""

    endpoints: Mapping[str, str]
    clock: Clock
    pool: urllib3.PoolManager = field(default_factory=_pool)

    def send(  # noqa: PLR0913 - one request
        self,
        dependency: Dependency,
        method: str,
        path: str,
        *,
        body: Mapping[str, object] | None,
        headers: Mapping[str, str],
        within: timedelta,
    ) -> Reply:
        """Send one request, once."""
        base = self.endpoints.get(dependency.name)
        if not base:
            message = f"Dependency {dependency.name!r} has no base URL: set it for the stage and deploy."
            raise SettingsError(message)
        deadline = self.clock.monotonic() + within.total_seconds()
        try:
            answer = self.pool.request(
                method,
                base.rstrip("/") + path,
                body=None if body is None else json.dumps(body).encode(),
                headers={"Content-Type": "application/json", "Accept": "application/json", **headers},
                timeout=urllib3.Timeout(
                    connect=min(dependency.connect, within).total_seconds(), total=within.total_seconds()
                ),
                redirect=False,
                preload_content=False,
            )
            content = self._read(answer, deadline)
        except (NewConnectionError, ConnectTimeoutError) as error:
            message = f"{dependency.name} cannot be reached ({type(error).__name__})."
            raise Unavailable(message, dependency=dependency.name) from error
        except (HTTPError, TimeoutError) as error:
            message = f"{dependency.name} gave no answer ({type(error).__name__})."
            raise Ambiguous(message, dependency=dependency.name) from error
        if answer.status in NOT_DONE:
            message = f"{dependency.name} answered {answer.status}."
            raise Unavailable(message, dependency=dependency.name, after=self._wait(answer.headers.get("Retry-After")))
        if answer.status == REQUEST_TIMEOUT or answer.status >= SERVER_ERRORS or len(content) > LARGEST_ANSWER:
            message = f"{dependency.name} answered {answer.status} with {len(content)} bytes."
            raise Ambiguous(message, dependency=dependency.name)
        return Reply(answer.status, _json(content))

    def _read(self, answer: urllib3.BaseHTTPResponse, deadline: float) -> bytes:
        """Read the body, at most a byte more than is taken, and no longer than the deadline.

        Raises:
            TimeoutError: it drips.
        """
        content = b""
        with contextlib.closing(answer):  # a connection that was not read to its end is of no use
            while len(content) <= LARGEST_ANSWER and (chunk := answer.read1(CHUNK)):
                content += chunk
                if self.clock.monotonic() > deadline:
                    message = "the answer drips"
                    raise TimeoutError(message)
            answer.release_conn()
        return content

    def _wait(self, text: str | None) -> timedelta | None:
        """The wait of a Retry-After header, in seconds or until a date, at most 12 hours."""
        if text is None:
            return None
        if text.isascii() and text.isdigit():
            return min(timedelta(seconds=int(text[:9])), LONGEST_HIDDEN)
        try:
            moment: datetime = parsedate_to_datetime(text)
        except (ValueError, OverflowError):  # the latter for numbers that no date has
            return None
        if moment.tzinfo is None:
            return None
        return min(max(moment - self.clock.now(), timedelta(0)), LONGEST_HIDDEN)


def _json(content: bytes) -> object:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None
