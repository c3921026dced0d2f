"""Sees every exchange of this process with Redis, whichever client and thread makes it: what is sent in one write."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from redis.connection import Connection

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CONNECTION: Any = Connection  # its one method that every exchange goes through


@contextlib.contextmanager
def exchanges(see: Callable[[Any], object]) -> Iterator[None]:
    """Have each exchange within the block seen, by what is sent, before it is made."""
    send = CONNECTION.send_packed_command

    def sent(self: Any, command: Any, *more: Any, **named: Any) -> Any:
        see(command)
        return send(self, command, *more, **named)

    CONNECTION.send_packed_command = sent
    try:
        yield
    finally:
        CONNECTION.send_packed_command = send
