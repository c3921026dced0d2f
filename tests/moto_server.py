"""moto's server with one request at a time: `python -m tests.moto_server PORT` for a process of its own.

moto's tables and queues are plain dictionaries. Served by many threads, a request may see another's half written item,
and two conditional writes may both find their condition true, which DynamoDB never does.
"""

from __future__ import annotations

import copy
import io
import logging
import sys
import threading
from typing import TYPE_CHECKING, Any
from unittest import mock

from moto.dynamodb import models
from moto.dynamodb.models.table import Table
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


class _OneCopy:
    """The module `copy`, as moto's transactions see it: of each table one copy, where moto makes one for each item.

    A transaction of a hundred items copied a table of thousands a hundred times, to have it back if one of them failed.
    """

    def __init__(self) -> None:
        self._copies: dict[int, Table] = {}

    def deepcopy(self, value: Any) -> Any:
        if not isinstance(value, Table):
            return copy.deepcopy(value)
        if id(value) not in self._copies:
            self._copies[id(value)] = copy.deepcopy(value)
        return self._copies[id(value)]


_transact = models.DynamoDBBackend.transact_write_items


def _transact_with_one_copy(self: models.DynamoDBBackend, transact_items: list[dict[str, Any]]) -> None:
    with mock.patch.object(models, "copy", _OneCopy()):  # one request at a time
        _transact(self, transact_items)


class MotoServer:
    """The server, on a port of its own or the one given."""

    def __init__(self, port: int = 0) -> None:
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        models.DynamoDBBackend.transact_write_items = _transact_with_one_copy  # type: ignore[method-assign]
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
