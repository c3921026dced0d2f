"""A server of ours, answering in a thread of its own for as long as a test needs it."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator
    from socketserver import BaseServer

Server = TypeVar("Server", bound="BaseServer")


@contextlib.contextmanager
def serving(server: Server) -> Iterator[Server]:
    """The server, answering; closed at the end."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
