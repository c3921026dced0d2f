"""One client of Valkey or Redis for a process: how it connects, how long it waits, what it tries again, when it gives up.

Every command and every exchange goes through `Connection.run`. It knows nothing of leases, entries or tokens of IAM.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from redis import Redis, RedisCluster
from redis.backoff import NoBackoff
from redis.exceptions import TimeoutError as RedisTimeoutError
from redis.retry import Retry

from shared.backends.redis.breaker import Breaker
from shared.backends.redis.errors import ERRORS, Meaning, meaning, name, root
from shared.backends.redis.lines import Lines
from shared.errors import CacheUnavailable, SettingsError
from shared.settings import PREFIX

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from shared.backends.redis.lines import Client, Command

# A command waits for a silent server at the most twice, and its caller goes on within a second, breaker or not. The
# slowest thousandth of a serverless cache's answers takes some milliseconds, a TLS handshake some tens.
WAIT = timedelta(milliseconds=400)
Result = TypeVar("Result")


class Credentials(Protocol):
    """What a new connection says who it is: a `redis.CredentialProvider` that can be told when it is not believed."""

    def get_credentials(self) -> tuple[str, str]:
        """User and password, without a wait."""
        ...

    def forget(self) -> None:
        """The server refused what was given last: give something else next time."""
        ...


@dataclass(slots=True)
class Connection:
    """A client that is made when it is first used, and made anew when its server is not the one to ask any more.

    Attributes:
        host: name or address; looked up anew with every new connection.
        port: its port.
        tls: whether to speak TLS.
        cluster: whether it speaks the cluster protocol.
        most: connections kept to a server, as many as threads use it.
        credentials: asked by every new connection; none where the server asks for none.
        wait: for a connection, and for each answer.
        breaker: spares callers the wait for a server that is gone.
    """

    host: str
    port: int
    tls: bool
    cluster: bool
    most: int = 10
    credentials: Credentials | None = None
    wait: timedelta = WAIT
    breaker: Breaker = field(default_factory=Breaker)
    _lines: Lines | None = None
    _making: Future[Lines] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, operation: Callable[[Lines], Result]) -> Result:
        """Do something with the client; once more on a new one, if a new connection may help.

        Args:
            operation: may be done twice, and may have been done although this raises.

        Raises:
            CacheUnavailable: not done, or nobody knows; named by class and code word.
            SettingsError: client and server speak different protocols; which setting to change.
        """
        permit = self.breaker.enter()
        if permit is None:
            message = "Redis failed again and again a moment ago; it is not asked for a while."
            raise CacheUnavailable(message)
        try:
            result = self._once_or_twice(operation)
        except ERRORS as error:
            means = meaning(error, cluster=self.cluster)
            if means in {Meaning.GONE, Meaning.DENIED}:
                self.breaker.failed(permit)
            elif means is Meaning.CROWDED:
                self.breaker.withdrew(permit)
            else:  # the server is well: releases and invalidations may succeed where a write does not
                self.breaker.answered(permit)
            if means is Meaning.MISCONFIGURED:
                raise SettingsError(self._advice()) from error
            message = f"Redis did not do it ({name(error)})."
            raise CacheUnavailable(message) from error
        except BaseException:
            self.breaker.withdrew(permit)
            raise
        self.breaker.answered(permit)
        return result

    def send(self, command: Command) -> object:
        """Send one command and give its reply; errors as of `run`."""
        return self.exchange((command,))[0]

    def exchange(self, commands: Sequence[Command]) -> list[object]:
        """Send commands in one pipelined exchange and give their replies, of which none is an error; errors as of `run`.

        It is no transaction: when it raises, any of them may have been done.
        """
        return self.run(lambda lines: self._answered(lines, commands))

    def _once_or_twice(self, operation: Callable[[Lines], Result]) -> Result:
        lines = None
        begun = time.monotonic()
        try:
            lines = self._made()
            return operation(lines)
        except ERRORS as error:
            means = meaning(error, cluster=self.cluster)
            if means in {Meaning.CROWDED, Meaning.REFUSED, Meaning.MISCONFIGURED}:
                raise
            if means is Meaning.DENIED and self.credentials is not None:
                self.credentials.forget()
            self._drop(lines)
            # A cluster client that hears nothing has looked the slots up over a new connection, and waited for that, too.
            waited = timedelta(seconds=time.monotonic() - begun)
            if isinstance(root(error), TimeoutError | RedisTimeoutError) and waited > 1.5 * self.wait:
                raise
        return operation(self._made())

    def _answered(self, lines: Lines, commands: Sequence[Command]) -> list[object]:
        replies = lines.exchange(commands)
        errors = [reply for reply in replies if isinstance(reply, Exception)]
        if errors:
            raise max(errors, key=lambda error: meaning(error, cluster=self.cluster))
        return replies

    def _made(self) -> Lines:
        """The client's lines. A cluster client asks the server when it is made: one thread does, the others share its result."""
        with self._lock:
            if self._lines is not None:
                return self._lines
            others = self._making
            if others is None:
                mine: Future[Lines] = Future()
                self._making = mine
        if others is not None:
            return others.result(2 * self.wait.total_seconds())
        try:
            lines = Lines(self._connect())
        except BaseException as error:
            with self._lock:
                self._making = None
            mine.set_exception(error)
            raise
        with self._lock:
            self._lines, self._making = lines, None
        mine.set_result(lines)
        return lines

    def _drop(self, lines: Lines | None) -> None:
        """Make a new client next time, unless somebody did already. What others are doing with the old one goes on."""
        with self._lock:
            if lines is None or self._lines is not lines:
                return
            self._lines = None
        lines.close()

    def _connect(self) -> Client:
        options: dict[str, Any] = {
            "host": self.host,
            "port": self.port,
            "ssl": self.tls,
            "credential_provider": self.credentials,
            "socket_connect_timeout": self.wait.total_seconds(),
            "socket_timeout": self.wait.total_seconds(),
            # `run` is the one place that tries again. It makes a look at idle connections needless: one that was cut
            # fails the command instead, which is sent again just as well.
            "retry": Retry(NoBackoff(), 0),
            "protocol": 2,  # of the third nothing is needed, and it costs an exchange more for every connection
            "driver_info": None,  # two more
            "decode_responses": True,
            # Each thread keeps one; a command whose slot has moved goes over one more, by the client itself.
            "max_connections": 2 * self.most,
        }
        if self.cluster:
            # Found again by its name, not by the addresses that nodes told when all was well.
            return RedisCluster(**options, dynamic_startup_nodes=False)
        return Redis(**options)

    def _advice(self) -> str:
        setting = f"{PREFIX}CACHE_CLUSTER"
        if self.cluster:
            return f"Redis at {self.host} speaks no cluster protocol: set {setting}=false, or connect to a cluster."
        return f"Redis at {self.host} speaks the cluster protocol: set {setting}=true."
