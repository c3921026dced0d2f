"""What every store of leases and cache entries promises."""

from __future__ import annotations

import itertools
import socket
import threading
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from local.processes import Children
from local.valkey import Valkey
from shared.backends.redis import RedisStore
from shared.backends.redis_connection import Connection
from shared.cache import Hit, Miss
from shared.errors import CacheUnavailable

if TYPE_CHECKING:
    from pathlib import Path

fresh = itertools.count()
TTL = timedelta(seconds=20)
SHORT = timedelta(milliseconds=120)


def key() -> str:
    return f"order/{next(fresh)}{{}}é"


def test_one_token_at_a_time_holds_a_key(cache: Any) -> None:
    name = key()
    assert cache.acquire(name, "a", TTL)
    assert not cache.acquire(name, "b", TTL)
    assert not cache.renew(name, "b", TTL)
    assert cache.renew(name, "a", TTL)


def test_lck_05_a_token_that_asks_again_finds_that_it_holds_the_key(cache: Any) -> None:
    name = key()
    assert cache.acquire(name, "a", TTL)
    assert cache.acquire(name, "a", TTL)


def test_lck_01_only_the_owner_gives_a_key_back(cache: Any) -> None:
    name = key()
    cache.acquire(name, "a", SHORT)
    time.sleep(0.2)
    assert cache.acquire(name, "b", TTL)
    cache.finish((), [(name, "a")])
    assert not cache.acquire(name, "c", TTL)
    cache.finish((), [(name, "b")])
    assert cache.acquire(name, "c", TTL)


def test_an_expired_lease_can_neither_be_renewed_nor_block(cache: Any) -> None:
    name = key()
    cache.acquire(name, "a", SHORT)
    time.sleep(0.2)
    assert not cache.renew(name, "a", TTL)
    assert cache.acquire(name, "b", TTL)


def test_a_renewed_lease_outlives_its_first_time_to_live(cache: Any) -> None:
    name = key()
    cache.acquire(name, "a", SHORT)
    cache.renew(name, "a", TTL)
    time.sleep(0.2)
    assert not cache.acquire(name, "b", TTL)


def test_an_entry_is_stored_only_with_its_refill_token(cache: Any) -> None:
    tag = key()
    assert cache.fetch(tag, "n", "r1", TTL) == Miss("r1")
    assert not cache.store(tag, "n", "other", "value", TTL)
    assert cache.store(tag, "n", "r1", "", TTL)
    assert cache.fetch(tag, "n", "r2", TTL) == Hit("")


def test_i36_a_refill_from_before_an_invalidation_is_refused(cache: Any) -> None:
    tag = key()
    cache.fetch(tag, "n", "r1", TTL)
    cache.finish([tag], [])
    assert not cache.store(tag, "n", "r1", "old", TTL)
    assert cache.fetch(tag, "n", "r2", TTL) == Miss("r2")
    assert not cache.store(tag, "n", "r1", "old", TTL)


def test_cac_07_an_invalidation_drops_every_entry_of_its_tag_and_no_other(cache: Any) -> None:
    tag, other = key(), key()
    for owner, name in ((tag, "a"), (tag, "b"), (other, "a")):
        cache.fetch(owner, name, f"{owner}{name}", TTL)
        assert cache.store(owner, name, f"{owner}{name}", "v", TTL)
    cache.finish([tag], [])
    assert isinstance(cache.fetch(tag, "a", "r", TTL), Miss)
    assert isinstance(cache.fetch(tag, "b", "r", TTL), Miss)
    assert cache.fetch(other, "a", "r", TTL) == Hit("v")


def test_a_refill_token_is_good_for_one_entry_once(cache: Any) -> None:
    tag = key()
    cache.fetch(tag, "n", "r1", TTL)
    assert cache.store(tag, "n", "r1", "v1", TTL)
    assert not cache.store(tag, "n", "r1", "v2", TTL)


def test_finishing_nothing_twice_is_harmless(cache: Any) -> None:
    cache.finish([key()], [(key(), "nobody")])


def test_i37_no_entry_outlives_the_time_to_live_whatever_else_its_tag_holds(cache: Any) -> None:
    tag = key()
    ttl = timedelta(milliseconds=600)
    cache.fetch(tag, "old", "r1", ttl)
    assert cache.store(tag, "old", "r1", "v", ttl)
    for turn in range(4):
        time.sleep(0.2)
        cache.fetch(tag, f"other-{turn}", f"x{turn}", ttl)
        cache.store(tag, f"other-{turn}", f"x{turn}", "v", ttl)
    assert isinstance(cache.fetch(tag, "old", "r2", ttl), Miss)


def test_one_exchange_may_span_many_slots(cache: Any) -> None:
    names = [key() for _ in range(20)]
    for name in names:
        cache.fetch(name, "n", f"r{name}", TTL)
        assert cache.store(name, "n", f"r{name}", "v", TTL)
        assert cache.acquire(name, "a", TTL)
    cache.finish(names, [(name, "a") for name in names])
    assert all(isinstance(cache.fetch(name, "n", "r", TTL), Miss) for name in names)
    assert all(cache.acquire(name, "b", TTL) for name in names)


def test_threads_do_not_wait_for_each_other_to_find_a_cluster_gone() -> None:
    hole = socket.create_server(("127.0.0.1", 0))
    store = RedisStore(Connection("127.0.0.1", hole.getsockname()[1], tls=False, cluster=True))
    refused = []

    def ask() -> None:
        with pytest.raises(CacheUnavailable):
            store.acquire("k", "t", TTL)
        refused.append(time.monotonic())

    begun = time.monotonic()
    threads = [threading.Thread(target=ask) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    hole.close()
    assert len(refused) == 10
    assert max(refused) - min(refused) < 1  # the first waited for its timeout, the others for the first
    assert max(refused) - begun < 10


@pytest.mark.parametrize("cluster", [False, True])
def test_a_server_that_is_not_there_is_unavailable_and_found_again_when_it_is(cluster: bool, tmp_path: Path) -> None:
    with Children() as children:
        server = Valkey(children, tmp_path)
        store = RedisStore(Connection(server.host, server.port, tls=False, cluster=cluster))
        for call in (
            lambda: store.acquire("k", "t", TTL),
            lambda: store.finish(["t"], []),
            lambda: store.fetch("t", "n", "r", TTL),
        ):
            with pytest.raises(CacheUnavailable):
                call()
        if not cluster:
            server.start()
            assert store.acquire("k", "t", TTL)
