"""Real Valkey servers that fail over, load, and are cut off: what the connection makes of it, seen at the server, too."""

from __future__ import annotations

import signal
from datetime import timedelta
from typing import TYPE_CHECKING

import psutil
import pytest

from shared.backends.redis.breaker import Breaker
from shared.backends.redis.keys import lease_key
from shared.errors import CacheUnavailable
from tests.faults.cutter import Cutter
from tests.faults.valkeys import TTL, asking, follow, promote, refusals, store_at
from tests.waiting import until
from tests.world import FakeClock, acquired

if TYPE_CHECKING:
    from collections.abc import Callable

    from local.stack.valkey import Valkey
    from shared.backends.redis.leases import RedisStore


def test_lck_10_a_primary_that_became_a_replica_is_used_again_once_it_is_promoted(
    new_valkey: Callable[..., Valkey],
) -> None:
    other, server = new_valkey(), new_valkey()
    store = store_at(server.port)
    assert acquired(store, "order/1", "mine", TTL)
    follow(server, other)
    with pytest.raises(CacheUnavailable, match="READONLY"):
        acquired(store, "order/2", "mine", TTL)
    assert refusals(server, "READONLY") == 2  # the witness: asked, and once more on a new connection
    promote(server)
    assert acquired(store, "order/2", "mine", TTL)


def test_lck_10_a_name_that_leads_to_the_new_primary_is_looked_up_anew_and_nobody_notices(
    new_valkey: Callable[..., Valkey],
) -> None:
    old, new = new_valkey(), new_valkey()
    name = Cutter(old.port)  # where new connections of one address lead
    store = store_at(name.port)
    assert acquired(store, "order/1", "mine", TTL)
    follow(new, old)
    promote(new)
    follow(old, new)  # the old primary comes back as a replica; the warm connection still leads to it
    name.target = new.port
    assert store.renew("order/1", "mine", TTL)
    assert acquired(store, "order/2", "mine", TTL)
    assert refusals(old, "READONLY") == 1  # the witness: the warm connection, once
    with asking(new) as redis:
        assert redis.exists(lease_key("order/1"), lease_key("order/2")) == 2
    name.close()


def test_a_server_that_loads_its_data_is_unavailable_and_used_once_it_has_them(
    new_valkey: Callable[..., Valkey],
) -> None:
    # It answers others after every KiB that it loads, and takes 20 ms for each key.
    slowly = {"key-load-delay": "20000", "loading-process-events-interval-bytes": "1024", "rdbcompression": "no"}
    server = new_valkey(keeps=True, options=slowly)
    with asking(server) as redis:
        redis.mset({f"filler-{n}": "x" * 2000 for n in range(150)})
    store = store_at(server.port)
    assert acquired(store, "order/1", "mine", TTL)
    server.stop()
    server.start()
    with pytest.raises(CacheUnavailable, match=r"BusyLoadingError, LOADING"):
        acquired(store, "order/2", "mine", TTL)
    assert refusals(server, "LOADING") >= 1  # the witness: over a new connection, since the warm one was cut
    with asking(server) as redis:
        until(lambda: redis.info("persistence")["loading"] == 0)
    assert acquired(store, "order/2", "mine", TTL)


def test_a_lease_is_renewed_through_connections_that_are_killed_again_and_again(
    new_valkey: Callable[..., Valkey],
) -> None:
    server = new_valkey()
    store = store_at(server.port)
    assert acquired(store, "order/1", "mine", TTL)
    killed = 0
    with asking(server) as redis:
        for _ in range(20):
            killed += int(redis.client_kill_filter(_type="normal", skipme=True))
            assert store.renew("order/1", "mine", TTL)
    assert killed == 20  # the witness: each renewal found its connection cut


def test_a_script_that_the_server_has_forgotten_is_sent_again_and_nobody_notices(
    new_valkey: Callable[..., Valkey],
) -> None:
    server = new_valkey()
    store = store_at(server.port)
    assert acquired(store, "order/1", "mine", TTL)
    with asking(server) as redis:
        redis.script_flush()
        assert redis.info("memory")["number_of_cached_scripts"] == 0  # the witness
    assert store.renew("order/1", "mine", TTL)
    assert refusals(server, "NOSCRIPT") >= 1  # the witness


@pytest.mark.parametrize("how", ["frozen", "paused"])
def test_lck_11_a_server_that_hangs_is_asked_a_few_times_then_by_one_after_the_pause(
    new_valkey: Callable[..., Valkey], how: str
) -> None:
    server = new_valkey()
    clock = FakeClock()
    store = store_at(server.port, breaker=Breaker(failures=2, monotonic=clock.monotonic))
    assert acquired(store, "order/1", "mine", TTL)
    with asking(server) as redis:
        before = int(redis.info("stats")["total_connections_received"])
        if how == "paused":
            redis.execute_command("CLIENT", "PAUSE", 6_000, "ALL")  # it ends by itself: the server hears nobody
    process = psutil.Process(server._child.process.pid)  # type: ignore[union-attr]
    if how == "frozen":
        server.signal(signal.SIGSTOP)
        until(lambda: process.status() == psutil.STATUS_STOPPED)
    for _ in range(2):
        with pytest.raises(CacheUnavailable, match="TimeoutError"):
            store.renew("order/1", "mine", TTL)
    for _ in range(100):
        with pytest.raises(CacheUnavailable, match="not asked"):
            store.renew("order/1", "mine", TTL)
    if how == "frozen":
        server.signal(signal.SIGCONT)
    with asking(server) as redis:
        received = int(redis.info("stats")["total_connections_received"]) - before
    assert (
        received <= 4 + 1
    )  # two tries for each of two calls, the first of them on a warm connection; and the test's own
    until(lambda: _is_back(store, clock))


def _is_back(store: RedisStore, clock: FakeClock) -> bool:
    clock.pass_(timedelta(seconds=10))
    try:
        return store.renew("order/1", "mine", TTL)
    except CacheUnavailable:
        return False
