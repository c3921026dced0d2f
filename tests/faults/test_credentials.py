"""Credentials that change while connections are open, and that the server refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from shared.backends.redis.connection import Connection
from shared.backends.redis.leases import RedisStore
from shared.errors import CacheUnavailable
from tests.faults.valkeys import TTL, asking, store_at
from tests.world import acquired

if TYPE_CHECKING:
    from collections.abc import Callable

    from local.stack.valkey import Valkey


class Password:
    """Credentials that somebody else changes."""

    def __init__(self, password: str) -> None:
        self.password = password
        self.asked = 0
        self.forgotten = 0

    def get_credentials(self) -> tuple[str, str]:
        self.asked += 1
        return "functions", self.password

    def forget(self) -> None:
        self.forgotten += 1


def set_password(server: Valkey, password: str) -> None:
    with asking(server) as redis:
        redis.execute_command("ACL", "SETUSER", "functions", "reset", "on", "~*", "+@all", f">{password}")


@pytest.mark.parametrize("cluster", [False, True])
def test_a_connection_cut_after_twelve_hours_comes_back_with_a_fresh_token(
    new_valkey: Callable[..., Valkey], cluster: bool
) -> None:
    server = new_valkey(cluster=cluster)
    set_password(server, "token-1")
    credentials = Password("token-1")
    to = Connection("127.0.0.1", server.port, tls=False, cluster=cluster, credentials=credentials)
    store = RedisStore(to)
    assert acquired(store, "order/1", "mine", TTL)
    asked = credentials.asked
    set_password(server, "token-2")
    assert store.renew("order/1", "mine", TTL)
    assert credentials.asked == asked  # a warm connection goes on under the old one
    credentials.password = "token-2"
    with asking(server) as redis:
        assert redis.client_kill_filter(_type="normal", skipme=True) >= 1  # the witness
    assert store.renew("order/1", "mine", TTL)
    assert credentials.asked > asked
    assert credentials.forgotten == 0


def test_an_old_token_is_refused_by_name_and_work_goes_on_with_a_new_one(new_valkey: Callable[..., Valkey]) -> None:
    server = new_valkey()
    set_password(server, "token-2")
    credentials = Password("token-1")
    store = store_at(server.port, credentials=credentials)
    with pytest.raises(CacheUnavailable, match=r"AuthenticationError, WRONGPASS"):
        acquired(store, "order/1", "mine", TTL)
    assert (credentials.asked, credentials.forgotten) == (2, 1)
    with asking(server) as redis:
        refusals = [entry["reason"] for entry in redis.acl_log() if entry["username"] == "functions"]
        assert refusals == ["auth"]  # the witness: twice within a second is one entry with a count
    credentials.password = "token-2"
    assert acquired(store, "order/1", "mine", TTL)
