"""Open connections to a client's servers, each lent for one exchange at a time.

The client's own way looks at the socket whenever its pool lends a connection, and keeps books for each command: as much
work as the exchange itself. Whoever asks here tries a connection that was cut once more anyway (connection.py).
"""

from __future__ import annotations

import hashlib
from collections import defaultdict, deque
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

from redis import Redis, RedisCluster
from redis.exceptions import AskError, NoScriptError, ResponseError, TryAgainError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    Client = Redis | RedisCluster
    Reply = object  # or the error that the server answered


@dataclass(frozen=True, slots=True)
class Command:
    """One command on keys of one hash slot; it may be repeated without harm, since the reply to it may be lost.

    Attributes:
        key: one of them.
        words: as they are sent.
        text: of the script whose digest is sent; a server that lacks it is sent the text.
    """

    key: str
    words: tuple[str, ...]
    text: str | None = None

    @classmethod
    def script(cls, text: str, key: str, *arguments: str, also: tuple[str, ...] = ()) -> Command:
        """A Lua script, named by its digest: the text would be most of what is sent, and is paid for by the kilobyte."""
        return cls(key, ("EVALSHA", _digest(text), str(1 + len(also)), key, *also, *arguments), text)

    @property
    def in_full(self) -> Command:
        """The same with the script's text, which the server keeps from then on."""
        return self if self.text is None else Command(self.key, ("EVAL", self.text, *self.words[2:]))


@cache
def _digest(script: str) -> str:
    return hashlib.sha1(script.encode(), usedforsecurity=False).hexdigest()


# The client's own types are missing in what follows.
@dataclass(slots=True, eq=False)
class Lines:
    """The open connections of one client; a pool makes and counts them, and is asked again when one was cut."""

    client: Client
    closed: bool = False
    _free: defaultdict[Any, deque[Any]] = field(default_factory=lambda: defaultdict(deque))

    def exchange(self, commands: Sequence[Command]) -> list[Reply]:
        """Send commands, to each server in one write, and give a reply for each; errors of the server are replies.

        Scripts that a server lacks are sent once more, in full: it was started anew, or has forgotten them.

        Raises:
            redis.RedisError: OSError: no answer of one of the servers; any command may have been done.
        """
        replies = self._exchanged(commands)
        lacking = [place for place, reply in enumerate(replies) if isinstance(reply, NoScriptError)]
        if lacking:
            again = self._exchanged([commands[place].in_full for place in lacking])
            for place, reply in zip(lacking, again, strict=True):
                replies[place] = reply
        return replies

    def _exchanged(self, commands: Sequence[Command]) -> list[Reply]:
        client: Any = self.client
        if isinstance(client, Redis):
            return self._asked([(client.connection_pool, commands)])
        places: defaultdict[Any, list[int]] = defaultdict(list)  # by the pool of the server that has their keys
        for place, command in enumerate(commands):
            node = client.get_node_from_key(command.key)
            places[client.get_redis_connection(node).connection_pool].append(place)
        asked = [(pool, [commands[place] for place in there]) for pool, there in places.items()]
        replies: list[Reply] = [None] * len(commands)
        for place, reply in zip(chain.from_iterable(places.values()), self._asked(asked), strict=True):
            moving = isinstance(reply, AskError | TryAgainError)  # the slot is with another server, or on its way there
            replies[place] = client.execute_command(*commands[place].in_full.words) if moving else reply
        return replies

    def _lend(self, pool: Any) -> Any:  # noqa: ANN401 - see above
        """A connection that nobody uses, as it is; else one more from the pool, which opens it."""
        try:
            return self._free[pool].pop()
        except IndexError:
            return pool.get_connection()

    def _asked(self, parts: Sequence[tuple[Any, Sequence[Command]]]) -> list[Reply]:
        """Write to the server of each pool, then read from each."""
        lent: list[tuple[Any, Any]] = []
        try:
            for pool, commands in parts:
                line = self._lend(pool)
                lent.append((pool, line))
                line.send_packed_command((packed(commands),), check_health=False)
            replies = [_reply(line) for (_, line), (_, commands) in zip(lent, parts, strict=True) for _ in commands]
        except BaseException:
            for pool, line in lent:  # what they still have to say answers nobody; the pool opens them again
                line.disconnect()
                pool.release(line)
            raise
        for pool, line in lent:
            self._free[pool].append(line)
        if self.closed:
            self.close()
        return replies

    def close(self) -> None:
        """Close what nobody uses, and what is used when that is over."""
        self.closed = True
        for lines in list(self._free.values()):
            while lines:
                lines.pop().disconnect()


def packed(commands: Iterable[Command]) -> bytes:
    """Commands in the protocol's form (RESP): each an array of bulk strings. The client's own way knows more kinds of words."""
    return b"".join(map(_packed, commands))


def _packed(command: Command) -> bytes:
    text = "".join([f"${len(word)}\r\n{word}\r\n" for word in command.words])
    if text.isascii():  # a character is a byte
        return f"*{len(command.words)}\r\n{text}".encode()
    words = [word.encode() for word in command.words]
    return b"*%d\r\n" % len(words) + b"".join([b"$%d\r\n%b\r\n" % (len(word), word) for word in words])


def _reply(line: Any) -> Reply:  # noqa: ANN401 - see above
    try:
        return cast("Reply", line.read_response())
    except ResponseError as error:
        return error
