"""The token by which ElastiCache knows a function: what is in it, how long it is kept, and when it is signed anew."""

from __future__ import annotations

import contextlib
import threading
from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import pytest
from botocore.credentials import ReadOnlyCredentials
from botocore.exceptions import CredentialRetrievalError
from redis.exceptions import AuthenticationError

from shared.backends.redis import elasticache
from shared.backends.redis.connection import Connection
from shared.backends.redis.elasticache import KEPT, LIFE, IamToken, connection
from shared.backends.redis.lines import Command
from shared.errors import CacheUnavailable, SettingsError
from shared.settings import Settings
from tests.fake_redis import OK, FakeRedis
from tests.world import START, FakeClock

if TYPE_CHECKING:
    from collections.abc import Callable

KEYS = ReadOnlyCredentials("AKIDEXAMPLE", "secret-of-the-function", "session-token", None)
SETTINGS = Settings("jobs", "outbox", cache_host="cache.example", cache_user="functions", cache_name="Tahan-1")


@pytest.fixture
def signed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tokens in the order in which they were signed, each told from the others by its end."""
    made: list[str] = []
    sign = IamToken._sign

    def count(self: IamToken, keys: ReadOnlyCredentials) -> str:
        made.append(f"{sign(self, keys)}#{len(made)}")
        return made[-1]

    monkeypatch.setattr(IamToken, "_sign", count)
    return made


def token(clock: FakeClock, keys: Callable[[], ReadOnlyCredentials] = lambda: KEYS) -> IamToken:
    return IamToken("functions", "Tahan-1", "eu-central-1", keys, clock)


def test_a_token_is_a_presigned_request_to_connect_without_its_scheme() -> None:
    user, password = token(FakeClock()).get_credentials()
    assert user == "functions"
    assert not password.startswith("http")
    parts = urlsplit(f"http://{password}")
    asked = {name: value for name, (value,) in parse_qs(parts.query, strict_parsing=True).items()}
    assert (parts.netloc, parts.path) == ("tahan-1", "/")  # the cache's name, in lower case
    assert asked["Action"] == "connect"
    assert asked["User"] == "functions"
    assert asked["ResourceType"] == "ServerlessCache"
    assert asked["X-Amz-Expires"] == "900"
    assert asked["X-Amz-SignedHeaders"] == "host"
    assert asked["X-Amz-Security-Token"] == "session-token"
    assert asked["X-Amz-Credential"].startswith("AKIDEXAMPLE/")
    assert asked["X-Amz-Credential"].endswith("/eu-central-1/elasticache/aws4_request")
    assert len(asked["X-Amz-Signature"]) == 64
    assert "secret-of-the-function" not in password


def test_what_differs_is_signed_differently() -> None:
    def signature(user: str, cache: str) -> str:
        _, password = IamToken(user, cache, "eu-central-1", lambda: KEYS, FakeClock()).get_credentials()
        return password.partition("X-Amz-Signature=")[2]

    assert len({signature("a", "c"), signature("b", "c"), signature("a", "d")}) == 3


def test_a_token_is_kept_while_it_has_minutes_left_and_then_signed_anew(signed: list[str]) -> None:
    clock = FakeClock()
    credentials = token(clock)
    first = credentials.get_credentials()
    clock.pass_(KEPT - timedelta(seconds=1))
    assert credentials.get_credentials() == first
    assert len(signed) == 1
    clock.pass_(timedelta(seconds=1))
    assert credentials.get_credentials() != first
    assert len(signed) == 2
    assert timedelta(minutes=2) <= LIFE - KEPT


@pytest.mark.parametrize("stands_still", ["wall", "monotonic"])
def test_a_token_ages_by_whichever_clock_goes_on(signed: list[str], stands_still: str) -> None:
    clock = FakeClock()
    credentials = token(clock)
    credentials.get_credentials()
    if stands_still == "wall":  # set back
        clock.now = lambda: START  # type: ignore[method-assign]
    else:  # the machine was frozen
        clock.monotonic = lambda: 0.0  # type: ignore[method-assign]
    clock.pass_(KEPT)
    credentials.get_credentials()
    assert len(signed) == 2


def test_new_credentials_of_the_function_make_a_new_token_at_once() -> None:
    keys = [KEYS]
    credentials = token(FakeClock(), lambda: keys[0])
    _, before = credentials.get_credentials()
    keys[0] = ReadOnlyCredentials("AKIDROTATED", "another-secret", None, None)
    _, after = credentials.get_credentials()
    assert "AKIDEXAMPLE" in before
    assert "AKIDROTATED" in after
    assert "X-Amz-Security-Token" not in after


def test_a_token_that_was_refused_is_not_given_again(signed: list[str]) -> None:
    credentials = token(FakeClock())
    credentials.get_credentials()
    credentials.forget()
    credentials.get_credentials()
    assert len(signed) == 2


def test_two_threads_sign_one_token(signed: list[str]) -> None:
    both = threading.Barrier(2)
    met = []

    def keys() -> ReadOnlyCredentials:
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait(0.2)
            met.append(True)
        return KEYS

    credentials = token(FakeClock(), keys)
    given: list[tuple[str, str]] = []
    threads = [threading.Thread(target=lambda: given.append(credentials.get_credentials())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert met == []
    assert len(signed) == 1
    assert given[0] == given[1]


def test_a_function_that_cannot_get_its_own_credentials_finds_redis_unavailable() -> None:
    def none() -> ReadOnlyCredentials:
        raise CredentialRetrievalError(provider="env", error_msg="secret detail")

    with pytest.raises(AuthenticationError, match="CredentialRetrievalError"):
        token(FakeClock(), none).get_credentials()


def test_the_functions_own_credentials_and_region_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDOFTHEFUNCTION")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "session")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-3")
    made = connection(SETTINGS, FakeClock(), most=3)
    assert made.credentials is not None
    _, password = made.credentials.get_credentials()
    assert "AKIDOFTHEFUNCTION%2F" in password
    assert "%2Feu-west-3%2Felasticache%2F" in password


def test_without_a_user_nothing_is_signed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elasticache, "_token", pytest.fail)
    made = connection(Settings("jobs", "outbox", cache_host="127.0.0.1"), FakeClock(), most=3)
    assert made.credentials is None


def test_a_user_without_the_caches_name_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"TAHAN_CACHE_NAME is not: set both, or neither"):
        connection(Settings("jobs", "outbox", cache_host="c", cache_user="functions"), FakeClock(), most=3)


def test_a_user_without_aws_credentials_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("botocore.session.Session.get_credentials", lambda _: None)
    with pytest.raises(SettingsError, match="no AWS credentials or no region"):
        connection(SETTINGS, FakeClock(), most=3)


def test_no_credentials_for_now_is_no_error_of_the_job() -> None:
    def none() -> ReadOnlyCredentials:
        raise CredentialRetrievalError(provider="env", error_msg="secret detail")

    with FakeRedis(lambda *_: OK) as server:
        to = Connection(server.host, server.port, tls=False, cluster=False, credentials=token(FakeClock(), none))
        with pytest.raises(CacheUnavailable, match="AuthenticationError") as refused:
            to.send(Command("k", ("GET", "k")))
        assert "secret" not in str(refused.value)
        assert server.commands == []
