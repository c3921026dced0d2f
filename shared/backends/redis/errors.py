"""What an error of the Redis client means for the one who asked: whether a new connection can help, or nothing can.

A server's error begins with a code word (READONLY, OOM, ...); that word may be told, the rest of its text never is.
"""

from __future__ import annotations

from enum import IntEnum

from redis.exceptions import (
    AskError,
    AuthenticationError,
    AuthorizationError,
    ClusterCrossSlotError,
    ClusterError,
    InvalidResponse,
    MaxConnectionsError,
    ReadOnlyError,
    RedisClusterException,
    RedisError,
    ResponseError,
    SlotNotCoveredError,
    TryAgainError,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

# All that the client raises for its server or its network; anything else is a mistake in this program.
ERRORS = (RedisError, RedisClusterException, OSError)
NO_CLUSTER = "cluster support disabled"  # the only way in which a server tells that it speaks no cluster protocol


class Meaning(IntEnum):
    """What an error means. Of several errors of one exchange the greatest counts."""

    CROWDED = 0  # our own pool has no connection left: nothing is known of the server
    REFUSED = 1  # this command, by a server that is well: another try changes nothing
    DENIED = 2  # the credentials: those of a new connection are fresh
    GONE = 3  # no answer, or one of a server that is not (any more) the one to ask: look it up anew
    MISCONFIGURED = 4  # the client speaks another protocol than the server


def meaning(error: Exception, *, cluster: bool) -> Meaning:
    """Tell what an error means to a client that does, or does not, speak the cluster protocol."""
    match cause := root(error):
        case AskError() | ClusterCrossSlotError() if not cluster:  # MOVED is an AskError, too
            return Meaning.MISCONFIGURED
        case ResponseError() if cluster and NO_CLUSTER in str(cause):
            return Meaning.MISCONFIGURED
        case AuthenticationError() | AuthorizationError():
            return Meaning.DENIED
        case MaxConnectionsError():
            return Meaning.CROWDED
        case RedisConnectionError() | RedisTimeoutError() | OSError() | InvalidResponse():  # LOADING is among them
            return Meaning.GONE
        case ReadOnlyError() | ClusterError() | TryAgainError() | AskError() | SlotNotCoveredError():
            return Meaning.GONE  # CLUSTERDOWN and MASTERDOWN are ClusterErrors
        case _:
            return Meaning.REFUSED


def name(error: Exception) -> str:
    """The error's class and the server's code word, if it gave one; never a value."""
    cause = root(error)
    kind = type(cause).__name__
    code = getattr(cause, "status_code", None)
    if code is None and isinstance(cause, ResponseError):  # one that the client has no class for
        code = str(cause).partition(" ")[0]
    return f"{kind}, {code}" if code and code.isalpha() and code.isupper() else kind


def root(error: BaseException) -> BaseException:
    """The error that a cluster client wraps into one of its own when it cannot be made."""
    while isinstance(error, RedisClusterException) and (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    return error
