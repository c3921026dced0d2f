"""moto's server with one request at a time: `python -m tests.moto_server PORT` for a process of its own.

moto's tables and queues are plain dictionaries. Served by many threads, a request may see another's half written item,
and two conditional writes may both find their condition true, which DynamoDB never does.
"""

from __future__ import annotations

import io
import logging
import sys
import threading
from typing import TYPE_CHECKING, Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class OneAtATime:
    """A WSGI application that answers one request after another; their bodies may arrive side by side."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._lock = threading.Lock()

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        # A client that stands still while it sends keeps nobody else waiting.
        environ["wsgi.input"] = io.BytesIO(environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)))
        with self._lock:
            return [b"".join(self._inner(environ, start_response))]


class MotoServer:
    """The server, on a port of its own or the one given."""

    def __init__(self, port: int = 0) -> None:
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        application = OneAtATime(DomainDispatcherApplication(create_backend_app))
        self._server = make_server("127.0.0.1", port, application, threaded=True, request_handler=MotoRequestHandler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def serve(self) -> None:
        """Answer until the process ends."""
        self._server.serve_forever()


if __name__ == "__main__":
    MotoServer(int(sys.argv[1])).serve()
