"""A server on loopback that speaks as much of the protocol as a test needs, and counts what reaches it."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import TYPE_CHECKING, BinaryIO, Self

if TYPE_CHECKING:
    from collections.abc import Callable

    Answer = Callable[[int, list[str]], bytes | None]

OK = b"+OK\r\n"
ONE = b":1\r\n"
SILENCE = b""


def error(line: str) -> bytes:
    return f"-{line}\r\n".encode()


class FakeRedis:
    """Answers each command by `answer(connection, words)`: bytes, SILENCE, or None to cut the connection.

    Connections are numbered from 1. `commands` holds (connection, command) in their order.
    """

    host = "127.0.0.1"

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.connections = 0
        self.commands: list[tuple[int, str]] = []
        self._sockets: list[socket.socket] = []
        self._server = socket.create_server((self.host, 0))
        self.port: int = self._server.getsockname()[1]

    def __enter__(self) -> Self:
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for sock in (self._server, *self._sockets):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()

    def count(self, command: str) -> int:
        return sum(command == seen for _, seen in self.commands)

    def slots(self) -> bytes:
        """What CLUSTER SLOTS answers where this server has them all."""
        node = b"*3\r\n$9\r\n127.0.0.1\r\n:%d\r\n$1\r\nn\r\n" % self.port
        return b"*1\r\n*3\r\n:0\r\n:16383\r\n" + node

    def as_cluster(self, words: list[str]) -> bytes | None:
        """The answer to what a cluster client asks when it is made; None for anything else."""
        match [word.upper() for word in words[:2]]:
            case ["CLUSTER SLOTS"] | ["CLUSTER", "SLOTS"]:
                return self.slots()
            case ["COMMAND"]:
                return b"*0\r\n"
            case _:
                return None

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self._server.accept()
                self.connections += 1
                self._sockets.append(sock)
                threading.Thread(target=self._speak, args=(sock, self.connections), daemon=True).start()

    def _speak(self, sock: socket.socket, connection: int) -> None:
        with contextlib.suppress(OSError, ValueError), sock, sock.makefile("rb") as stream:
            while words := _read(stream):
                self.commands.append((connection, words[0].upper()))
                reply = self.answer(connection, words)
                if reply is None:
                    sock.shutdown(socket.SHUT_RDWR)
                    return
                sock.sendall(reply)


def _read(stream: BinaryIO) -> list[str]:
    head = stream.readline()
    words = []
    for _ in range(int(head[1:] or 0)):
        length = int(stream.readline()[1:])
        words.append(stream.read(length + 2)[:length].decode())
    return words
