"""Calls to dependencies over a real socket: what surely and what maybe happened."""

from __future__ import annotations

import json
import threading
import time
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from shared.backends.http import HttpTransport
from shared.clock import SystemClock
from shared.dependency import Dependency, Reply
from shared.errors import Ambiguous, SettingsError, Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

SHOP = Dependency("shop", timeout=timedelta(seconds=1), connect=timedelta(milliseconds=500))


class Handler(BaseHTTPRequestHandler):
    """Answers by the path: /STATUS, /hang, /cut, /large, /text."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        sent = self.rfile.read(int(self.headers["Content-Length"] or 0))
        word = self.path.strip("/")
        if word == "hang":
            self.server.released.wait(5)  # type: ignore[attr-defined]
            self.close_connection = True
            return
        if word == "drip":
            self.send_response(200)
            self.send_header("Content-Length", "100")
            self.end_headers()
            for _ in range(100):
                self.wfile.write(b" ")
                self.wfile.flush()
                if self.server.released.wait(0.1):  # type: ignore[attr-defined]
                    return
            return
        if word == "cut":
            self.close_connection = True
            return
        status, _, wait = word.partition("-")
        content = b"x" * (1024 * 1024 + 1) if word == "large" else b"no json" if word == "text" else sent
        self.send_response(int(status) if status.isdigit() else 200)
        if wait:
            self.send_header("Retry-After", wait.replace("_", " "))
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002 - the base class's name
        """Say nothing."""


@pytest.fixture(scope="module")
def shop() -> Iterator[HttpTransport]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.released = threading.Event()  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    transport = HttpTransport({"shop": f"http://127.0.0.1:{server.server_port}/"}, SystemClock())
    yield transport
    transport.pool.clear()
    server.released.set()  # type: ignore[attr-defined]
    server.shutdown()
    thread.join()
    server.server_close()


def send(shop: HttpTransport, path: str, within: float = 2) -> Reply:
    return shop.send(
        SHOP, "POST", path, body={"a": 1}, headers={"Idempotency-Key": "k"}, within=timedelta(seconds=within)
    )


@pytest.mark.parametrize("status", [200, 201, 302, 400, 402, 404, 422])
def test_an_answer_is_given_back_with_its_json(shop: HttpTransport, status: int) -> None:
    assert send(shop, f"/{status}") == Reply(status, {"a": 1})


def test_a_body_that_is_no_json_is_none(shop: HttpTransport) -> None:
    assert send(shop, "/text") == Reply(200, None)


@pytest.mark.parametrize("status", [429, 503])
def test_busy_means_not_done(shop: HttpTransport, status: int) -> None:
    with pytest.raises(Unavailable) as caught:
        send(shop, f"/{status}")
    assert (caught.value.dependency, caught.value.after) == ("shop", None)


@pytest.mark.parametrize(
    ("header", "least", "most"),
    [
        ("7", 7, 7),
        ("999999999", 43_200, 43_200),
        ("Wed,_01_Jan_2020_00:00:00_GMT", 0, 0),
        ("Fri,_01_Jan_2100_00:00:00_GMT", 43_200, 43_200),
    ],
)
def test_retry_after_is_read_as_seconds_or_date_and_capped(
    shop: HttpTransport, header: str, least: int, most: int
) -> None:
    with pytest.raises(Unavailable) as caught:
        send(shop, f"/429-{header}")
    assert caught.value.after is not None
    assert least <= caught.value.after.total_seconds() <= most


@pytest.mark.parametrize("header", ["soon", "Mon,_01_Jan_99999999999_00:00:00_GMT"])
def test_a_retry_after_that_cannot_be_read_is_ignored(shop: HttpTransport, header: str) -> None:
    with pytest.raises(Unavailable) as caught:
        send(shop, f"/429-{header}")
    assert caught.value.after is None


@pytest.mark.parametrize("path", ["/500", "/501", "/502", "/504", "/505", "/524", "/599", "/408", "/cut", "/large"])
def test_what_may_have_been_done_is_ambiguous(shop: HttpTransport, path: str) -> None:
    with pytest.raises(Ambiguous):
        send(shop, path)


def test_no_answer_in_time_is_ambiguous(shop: HttpTransport) -> None:
    with pytest.raises(Ambiguous):
        send(shop, "/hang", within=0.3)


def test_an_answer_that_drips_is_given_up_at_the_deadline(shop: HttpTransport) -> None:
    begun = time.monotonic()
    with pytest.raises(Ambiguous):
        send(shop, "/drip", within=0.5)
    assert time.monotonic() - begun < 5  # ten seconds of dripping


def test_what_cannot_be_reached_was_not_done() -> None:
    transport = HttpTransport({"shop": "http://127.0.0.1:9"}, SystemClock())
    with pytest.raises(Unavailable):
        send(transport, "/")


def test_a_dependency_without_an_address_is_a_setting_missing() -> None:
    with pytest.raises(SettingsError, match="base URL"):
        send(HttpTransport({}, SystemClock()), "/")
    assert json.loads("{}") == {}
