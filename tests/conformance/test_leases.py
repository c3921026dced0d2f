"""What every store of leases promises of several keys at once."""

from __future__ import annotations

import itertools
from datetime import timedelta
from typing import Any

from shared.lease import Want
from tests.world import acquired

fresh = itertools.count()
TTL = timedelta(seconds=20)


def want(token: str, key: str = "") -> Want:
    return Want(key or f"batch/{next(fresh)}{{}}é", token, TTL)


def test_many_keys_are_taken_at_once_and_each_answer_is_its_own(cache: Any) -> None:
    wants = [want(f"t{number}") for number in range(12)]
    acquired(cache, wants[3].key, "another", TTL)
    acquired(cache, wants[5].key, wants[5].token, TTL)
    assert list(cache.acquire_all(wants)) == [number != 3 for number in range(12)]
    for each in wants:
        assert cache.renew(each.key, each.token, TTL) == (each is not wants[3])


def test_of_two_wants_of_one_key_the_first_is_granted(cache: Any) -> None:
    first = want("a")
    assert list(cache.acquire_all([first, want("b", first.key)])) == [True, False]


def test_asking_again_for_all_with_the_same_tokens_finds_them(cache: Any) -> None:
    wants = [want("a"), want("b")]
    cache.acquire_all(wants)
    assert list(cache.acquire_all(wants)) == [True, True]
