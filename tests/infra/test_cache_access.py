"""Who the functions are in the cache, and that the access string given to ElastiCache is enough and no more."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from redis import Redis
from redis.exceptions import NoPermissionError, ResponseError

from infra.access import SCRIPTS, access_string
from infra.stage.settings import ROOT
from local.processes.children import Children
from local.stack.valkey import Valkey
from shared.backends.redis.connection import Connection
from shared.backends.redis.leases import RedisStore
from shared.backends.redis.lines import Command
from shared.backends.redis.rates import RedisRates
from shared.errors import CacheUnavailable
from shared.rate import Rate
from tests.cache_user import PASSWORD, USER, CacheUser, admit
from tests.infra.walk import target
from tests.world import acquired

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.infra.walk import Walk

CALLED = re.compile(r"redis\.call\('([A-Z]+)'")


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "cluster"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Valkey, bool]]:
    """A Valkey with no user but the functions' and the tests'."""
    with Children() as children:
        server = Valkey(children, tmp_path_factory.mktemp("access"), cluster=request.param)
        server.start()
        admit(server)
        yield server, request.param


@pytest.fixture
def connection(server: tuple[Valkey, bool]) -> Connection:
    valkey, cluster = server
    return Connection(
        valkey.host, valkey.port, tls=False, cluster=cluster, credentials=CacheUser(), wait=timedelta(seconds=20)
    )


def test_the_access_string_names_each_command_that_a_script_calls_and_no_other() -> None:
    called = {
        command.lower()
        for module in (ROOT / "shared" / "backends" / "redis").glob("*.py")
        for command in CALLED.findall(module.read_text(encoding="utf-8"))
    }
    assert set(SCRIPTS) == called


def test_the_access_string_is_enough_for_leases(connection: Connection) -> None:
    store = RedisStore(connection)
    ttl = timedelta(seconds=9)
    assert acquired(store, "order/1", "mine", ttl)
    assert store.renew("order/1", "mine", ttl)
    store.finish([], [("order/1", "mine")])
    assert acquired(store, "order/1", "other", ttl)


def test_the_access_string_is_enough_for_rates(connection: Connection) -> None:
    assert not RedisRates(connection).take("owner/1", Rate(1))


@pytest.mark.parametrize(
    "words",
    [
        ("FLUSHALL",),
        ("FLUSHDB",),
        ("KEYS", "*"),
        ("CONFIG", "GET", "maxmemory"),
        ("ACL", "LIST"),
        ("CLIENT", "LIST"),
        ("SCRIPT", "FLUSH"),
        ("MONITOR",),
        ("SHUTDOWN", "NOSAVE"),
        ("GET", "other:key"),
        ("EVAL", "return redis.call('GET', KEYS[1])", "1", "other:key"),
        ("EVAL", "return redis.call('INCR', KEYS[1])", "1", "lease:{number}"),
    ],
)
def test_everything_else_is_refused(server: tuple[Valkey, bool], words: tuple[str, ...]) -> None:
    valkey, _ = server
    with Redis(port=valkey.port, username=USER, password=PASSWORD) as redis, pytest.raises(ResponseError) as refused:
        redis.execute_command(*words)
    assert isinstance(refused.value, NoPermissionError) or "ACL" in str(
        refused.value
    )  # the latter from within a script


def test_a_refusal_is_told_by_its_code_word_and_opens_no_breaker(connection: Connection) -> None:
    for _ in range(connection.breaker.failures + 1):
        with pytest.raises(CacheUnavailable, match=r"NoPermissionError, NOPERM"):
            connection.send(Command("lease:{a}", ("APPEND", "lease:{a}", "value that nobody may read")))


def test_the_cache_admits_its_users_alone(walk: Walk) -> None:
    (cache,) = walk.of("AWS::ElastiCache::ServerlessCache").values()
    groups = walk.of("AWS::ElastiCache::UserGroup")
    group = groups[target(cache["UserGroupId"])]
    users: dict[str, Any] = walk.of("AWS::ElastiCache::User")
    assert [target(user) for user in group["UserIds"]] == list(users)
    assert group["Engine"] == cache["Engine"] == "valkey"
    for user in users.values():
        assert user["AuthenticationMode"] == {"Type": "iam"}
        assert user["UserId"] == user["UserName"]  # ElastiCache wants it for IAM
        assert re.fullmatch(r"[a-z]([a-z0-9]|-(?!-))*[a-z0-9]", user["UserId"])
        assert len(user["UserId"]) <= 40
        assert user["AccessString"] == access_string()
