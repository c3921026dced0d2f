"""What every store promises of an invalidation that keeps one entry, moved forward."""

from __future__ import annotations

import time
from typing import Any

import pytest

from shared.caching.lives import Lives
from shared.caching.store import Hit, Loaded, Miss
from shared.tag import Fresh, Tag, Version
from tests.conformance.entries import PAST, SHORT, TTL, found, kept, key

LONG = Lives(TTL, TTL)


def refreshed(tag: str, version: int, value: str | None = "new", name: str = "n", lives: Lives = LONG) -> Tag:
    entry = Loaded(value, Version(version))
    return Tag(tag, entry.version, Fresh(name, entry, lives))


@pytest.mark.parametrize("value", ["new", "", None])
def test_a_refresh_moves_an_entry_forward_and_drops_all_else_under_its_tag(cache: Any, value: str | None) -> None:
    tag = kept(cache, Loaded("v1", Version(1)))
    kept(cache, Loaded("other", Version(1)), tag=tag, name="other")
    cache.finish([refreshed(tag, 2, value)], [])
    assert found(cache, tag) == Hit(Loaded(value, Version(2)))
    assert cache.fetch(tag, "other", "looker", TTL, None) == Miss()


def test_i36_a_refresh_revokes_the_refill_token_of_a_load_that_read_what_was_before(cache: Any) -> None:
    tag = kept(cache, Loaded("v1", Version(1)))
    assert cache.fetch(tag, "n", "late", TTL, Version(2)) == Miss()
    cache.finish([refreshed(tag, 2)], [])
    assert not cache.store(tag, "n", "late", Loaded("v1", Version(1)), LONG)
    assert found(cache, tag) == Hit(Loaded("new", Version(2)))


def test_i36_a_refresh_of_what_is_not_kept_creates_nothing_and_leaves_a_floor(cache: Any) -> None:
    tag = key()
    cache.finish([refreshed(tag, 2)], [])
    assert found(cache, tag, token="reader") == Miss()
    assert not cache.store(tag, "n", "reader", Loaded("v1", Version(1)), LONG)


def test_r1_3_a_refresh_that_comes_after_a_newer_one_never_writes_over_it(cache: Any) -> None:
    tag = kept(cache, Loaded("v3", Version(3)))
    cache.finish([refreshed(tag, 2)], [])
    assert found(cache, tag, token="reader") == Miss()
    assert not cache.store(tag, "n", "reader", Loaded("v2", Version(2)), LONG)


def test_r1_3_a_refresh_that_is_older_than_what_was_ever_kept_brings_nothing_back(cache: Any) -> None:
    tag = kept(cache, Loaded("v1", Version(1)))
    kept(cache, Loaded("v3", Version(3)), tag=tag, name="other")
    cache.finish([refreshed(tag, 2)], [])
    assert found(cache, tag) == Miss()


def test_an_entry_without_a_version_is_forgotten_since_nobody_can_tell_which_is_newer(cache: Any) -> None:
    tag = kept(cache, Loaded("some"))
    cache.finish([refreshed(tag, 2)], [])
    assert found(cache, tag) == Miss()


def test_a_refresh_that_is_told_twice_is_kept_once_more(cache: Any) -> None:
    tag = kept(cache, Loaded("v1", Version(1)))
    for _ in range(2):
        cache.finish([refreshed(tag, 2)], [])
    assert found(cache, tag) == Hit(Loaded("new", Version(2)))


def test_what_was_refreshed_lives_as_long_as_it_is_told(cache: Any) -> None:
    tag = kept(cache, Loaded("v1", Version(1)))
    cache.finish([refreshed(tag, 2, lives=Lives(SHORT, SHORT))], [])
    time.sleep(PAST)
    assert found(cache, tag) == Miss()
