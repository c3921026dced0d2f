"""What every store of leases and cache entries promises."""

from __future__ import annotations

import itertools
import time
from datetime import timedelta
from typing import Any

from shared.cache import Hit, Miss

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
