"""Serves the console on 127.0.0.1 until it is interrupted."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from werkzeug.serving import WSGIRequestHandler, make_server

from ops.console.app import App
from ops.console.guard import Guard
from ops.exits import CommandError, Exit

if TYPE_CHECKING:
    from werkzeug.serving import BaseWSGIServer

    from ops.console.house import House

HOST = "127.0.0.1"
IDLE_SECONDS = (
    60.0  # a page that is open asks every ten seconds at the latest: whoever says nothing for so long is gone
)


class _Quiet(WSGIRequestHandler):
    """Answers and writes no log: a line of it would hold the token."""

    protocol_version = "HTTP/1.1"
    timeout = IDLE_SECONDS

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        pass

    def log(self, type: str, message: str, *args: object) -> None:  # noqa: A002 - werkzeug's name
        pass


class Served:
    """A console that answers; its port is known as soon as it is made."""

    def __init__(self, house: House, port: int) -> None:
        self.server = _bound(port)
        self.guard = Guard.new(self.server.port, house.tools.tokens, read_only=house.read_only)
        self.server.app = App(house, self.guard)

    def forever(self) -> None:
        """Answer until the process is interrupted."""
        try:
            self.server.serve_forever()
        finally:
            self.server.server_close()

    def beside(self) -> threading.Thread:
        """Answer in a thread, until `stop` is called."""
        thread = threading.Thread(target=self.forever, daemon=True)
        thread.start()
        return thread

    def stop(self) -> None:
        """Answer no more."""
        self.server.shutdown()


def _bound(port: int) -> BaseWSGIServer:
    """A server that has the port.

    Raises:
        CommandError: somebody else has it.
    """
    try:
        return make_server(HOST, port, _nobody, threaded=True, request_handler=_Quiet)
    except (OSError, SystemExit) as error:  # which is how werkzeug says it
        message = f"The port {port} is taken: name another with --port, or leave it out."
        raise CommandError(message, Exit.REFUSED) from error


def _nobody(environ: object, start: object) -> list[bytes]:
    del environ, start
    return []
