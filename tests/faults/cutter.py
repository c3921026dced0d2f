"""A proxy before a server, whose connections are cut when a test says so."""

from __future__ import annotations

import select
import socket
import threading


class Cutter:
    """A relay on the wire to Valkey that cuts the connection instead of giving back the reply to one command."""

    def __init__(self, port: int) -> None:
        self.target = port
        self.cuts = 0
        self.armed = False
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self.server.accept()
            except OSError:
                return
            threading.Thread(target=self._relay, args=(client,), daemon=True).start()

    def _relay(self, client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", self.target)) as server:
            while True:
                ready, _, _ = select.select([client, server], [], [], 10)
                for source in ready:
                    data = source.recv(65536)
                    if not data:
                        return
                    if source is server and self.armed:
                        self.armed = False
                        self.cuts += 1
                        return
                    (server if source is client else client).sendall(data)

    def close(self) -> None:
        self.server.close()
