"""How a function reaches its cache by its settings, and the token of IAM by which ElastiCache knows it.

A token is a presigned request that is never sent: ElastiCache takes it as the password of a new connection within 15
minutes, and cuts the connection after 12 hours (ElastiCache user guide, "Authenticating with IAM"). Signing is
arithmetic; nothing here uses the network but a refresh of the function's own credentials by botocore.
"""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import TYPE_CHECKING

from redis import CredentialProvider
from redis.exceptions import AuthenticationError

from shared.backends.redis.connection import Connection
from shared.errors import SettingsError
from shared.settings import PREFIX

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from botocore.credentials import ReadOnlyCredentials

    from shared.clock import Clock
    from shared.settings import Settings

LIFE = timedelta(minutes=15)  # the longest that ElastiCache takes
KEPT = timedelta(
    minutes=11
)  # then signed anew: it has to last until a slow connection has used it, on a clock that errs


class IamToken(CredentialProvider):
    """The credentials of a user of ElastiCache whose authentication mode is IAM. Safe to share between threads."""

    def __init__(
        self, user: str, cache: str, region: str, keys: Callable[[], ReadOnlyCredentials], clock: Clock
    ) -> None:
        """Sign for the serverless cache of that name, as that user.

        Args:
            user: the user's id, which is its name.
            cache: the cache's name, not its address.
            region: of the cache.
            keys: gives the function's credentials as they are now.
            clock: tells how old a token is.
        """
        self._user = user
        self._cache = cache.lower()  # ElastiCache keeps it so, and checks the signature against that
        self._region = region
        self._keys = keys
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: tuple[str, ReadOnlyCredentials, datetime, float] | None = None

    def get_credentials(self) -> tuple[str, str]:
        """The user and a token that has some minutes left.

        Raises:
            AuthenticationError: the function has no credentials to sign with, for now.
        """
        with self._lock:
            now, monotonic = self._clock.now(), self._clock.monotonic()
            keys = self._keys_now()
            if self._kept is not None:
                token, signed_with, signed_at, signed_monotonic = self._kept
                # By both clocks: the one may be set back, the other stands still while the machine is frozen.
                age = max(abs(now - signed_at), timedelta(seconds=monotonic - signed_monotonic))
                if age < KEPT and keys == signed_with:
                    return self._user, token
            token = self._sign(keys)
            self._kept = token, keys, now, monotonic
            return self._user, token

    def forget(self) -> None:
        """Sign anew next time: the server refused the token."""
        with self._lock:
            self._kept = None

    def _keys_now(self) -> ReadOnlyCredentials:
        from botocore.exceptions import BotoCoreError  # noqa: PLC0415 - a function without IAM does not pay for it

        try:
            return self._keys()
        except BotoCoreError as error:
            message = f"The function has no credentials to sign with ({type(error).__name__})."
            raise AuthenticationError(message) from error

    def _sign(self, keys: ReadOnlyCredentials) -> str:
        from botocore.auth import SigV4QueryAuth  # noqa: PLC0415 - as above
        from botocore.awsrequest import AWSRequest  # noqa: PLC0415 - as above

        scheme = "http://"
        parameters = {"Action": "connect", "User": self._user, "ResourceType": "ServerlessCache"}
        request = AWSRequest("GET", f"{scheme}{self._cache}/", params=parameters)
        SigV4QueryAuth(keys, "elasticache", self._region, expires=int(LIFE.total_seconds())).add_auth(request)
        return str(request.url).removeprefix(scheme)


def connection(settings: Settings, clock: Clock, *, most: int) -> Connection:
    """The connection of a function to its cache; nothing is opened or signed before it is used.

    Raises:
        SettingsError: a user without the cache's name, or nothing to sign with.
    """
    return Connection(
        settings.cache_host,
        int(settings.cache_port),
        tls=settings.cache_tls,
        cluster=settings.cache_cluster,
        most=most,
        credentials=_token(settings, clock) if settings.cache_user else None,
    )


def _token(settings: Settings, clock: Clock) -> IamToken:
    from botocore.session import Session  # noqa: PLC0415 - a function without IAM does not pay for it

    if not settings.cache_name:
        message = f"{PREFIX}CACHE_USER is set and {PREFIX}CACHE_NAME is not: set both, or neither."
        raise SettingsError(message)
    session = Session()
    credentials, region = session.get_credentials(), session.get_config_variable("region")
    if credentials is None or not region:
        message = f"{PREFIX}CACHE_USER is set, and there are no AWS credentials or no region: a function has both."
        raise SettingsError(message)
    return IamToken(settings.cache_user, settings.cache_name, region, credentials.get_frozen_credentials, clock)
