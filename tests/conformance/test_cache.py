"""What every store of leases and cache entries promises."""

from __future__ import annotations

import socket
import threading
import time
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from redis import Redis

from local.processes.children import Children
from local.stack.valkey import Valkey
from shared.backends.memory import cache as memory_cache
from shared.backends.memory.cache import MemoryCache
from shared.backends.redis import cache as redis_cache
from shared.backends.redis.cache import RedisCache
from shared.backends.redis.connection import Connection
from shared.backends.redis.keys import tag_key
from shared.backends.redis.leases import RedisStore
from shared.caching.lives import Lives
from shared.caching.store import Busy, Hit, Loaded, Miss, Stale
from shared.clock import SystemClock
from shared.errors import CacheUnavailable, Refused
from shared.tag import Tag, Version
from tests.conformance.conftest import PATIENCE, Whole
from tests.conformance.entries import LONG, PAST, SHORT, TTL, found, kept, key
from tests.world import acquired

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

AGED = Lives(timedelta(milliseconds=1), TTL)  # past its soft time as soon as it is kept
LARGE = 2**53


def test_one_token_at_a_time_holds_a_key(cache: Any) -> None:
    name = key()
    assert acquired(cache, name, "a", TTL)
    assert not acquired(cache, name, "b", TTL)
    assert not cache.renew(name, "b", TTL)
    assert cache.renew(name, "a", TTL)


def test_lck_05_a_token_that_asks_again_finds_that_it_holds_the_key(cache: Any) -> None:
    name = key()
    assert acquired(cache, name, "a", TTL)
    assert acquired(cache, name, "a", TTL)


def test_lck_01_only_the_owner_gives_a_key_back(cache: Any) -> None:
    name = key()
    acquired(cache, name, "a", SHORT)
    time.sleep(0.2)
    assert acquired(cache, name, "b", TTL)
    cache.finish((), [(name, "a")])
    assert not acquired(cache, name, "c", TTL)
    cache.finish((), [(name, "b")])
    assert acquired(cache, name, "c", TTL)


def test_an_expired_lease_can_neither_be_renewed_nor_block(cache: Any) -> None:
    name = key()
    acquired(cache, name, "a", SHORT)
    time.sleep(0.2)
    assert not cache.renew(name, "a", TTL)
    assert acquired(cache, name, "b", TTL)


def test_a_renewed_lease_outlives_its_first_time_to_live(cache: Any) -> None:
    name = key()
    acquired(cache, name, "a", SHORT)
    cache.renew(name, "a", TTL)
    time.sleep(0.2)
    assert not acquired(cache, name, "b", TTL)


@pytest.mark.parametrize("value", ["", "0", "null", "false", "[]", None, "é" * 70_000])
def test_whatever_was_loaded_is_found_also_what_is_falsy_or_absent(cache: Any, value: str | None) -> None:
    for entry in (Loaded(value), Loaded(value, Version(LARGE + 1, epoch=3))):
        assert found(cache, kept(cache, entry)) == Hit(entry)


def test_i39_one_caller_gets_the_refill_lease_the_others_are_told_that_it_is_taken(cache: Any) -> None:
    tag = key()
    assert found(cache, tag, token="one") == Miss()
    for token in ("two", "three"):
        assert found(cache, tag, token=token) == Busy()


def test_a_token_that_asks_again_finds_that_it_has_the_refill_lease(cache: Any) -> None:
    tag = key()
    assert [found(cache, tag, token="one") for _ in range(2)] == [Miss(), Miss()]
    assert cache.store(tag, "n", "one", Loaded("v"), AGED)
    time.sleep(0.01)
    assert [type(found(cache, tag, token="two")) for _ in range(2)] == [Stale, Stale]


def test_an_entry_is_stored_only_with_its_refill_token(cache: Any) -> None:
    tag = key()
    assert not cache.store(tag, "n", "one", Loaded("v"), LONG)
    found(cache, tag, token="one")
    assert not cache.store(tag, "n", "another", Loaded("v"), LONG)
    assert not cache.store(tag, "another-name", "one", Loaded("v"), LONG)
    assert cache.store(tag, "n", "one", Loaded("v1"), LONG)
    assert found(cache, tag) == Hit(Loaded("v1"))


def test_a_store_whose_reply_was_lost_is_told_that_it_is_kept_and_changes_nothing_more(cache: Any) -> None:
    tag = key()
    found(cache, tag, token="one")
    assert cache.store(tag, "n", "one", Loaded("v1", Version(1)), AGED)
    assert cache.store(tag, "n", "one", Loaded("other", Version(2)), LONG)
    time.sleep(0.01)
    assert found(cache, tag, token="two").entry == Loaded("v1", Version(1))
    assert cache.store(tag, "n", "one", Loaded("v1", Version(1)), AGED)  # nor does it end the lease of the next
    assert cache.store(tag, "n", "two", Loaded("v2", Version(2)), LONG)
    assert not cache.store(tag, "n", "one", Loaded("v1", Version(1)), LONG)  # another is kept by now
    assert cache.put(tag, "n", Loaded("v3", Version(3)), LONG)
    assert not cache.store(tag, "n", "two", Loaded("v2", Version(2)), LONG)
    cache.finish([Tag(tag)], [])
    assert not cache.store(tag, "n", "one", Loaded("v1", Version(1)), LONG)


@pytest.mark.parametrize("version", [None, Version(9)])
def test_i36_a_refill_from_before_an_invalidation_is_refused(cache: Any, version: Version | None) -> None:
    tag = key()
    found(cache, tag, token="one")
    cache.finish([Tag(tag)], [])
    assert not cache.prolong(tag, "n", "one", TTL)
    assert not cache.store(tag, "n", "one", Loaded("old", version), LONG)
    assert found(cache, tag, token="two") == Miss()
    assert not cache.store(tag, "n", "one", Loaded("old", version), LONG)


def test_cac_07_an_invalidation_drops_every_entry_of_its_tag_and_no_other(cache: Any) -> None:
    tag, other = key(), key()
    for owner, name in ((tag, "a"), (tag, "b"), (other, "n")):
        kept(cache, Loaded("v"), tag=owner, name=name)
    cache.finish([Tag(tag)], [])
    assert [cache.fetch(tag, name, "r", TTL, None) for name in "ab"] == [Miss(), Miss()]
    assert found(cache, other) == Hit(Loaded("v"))


def test_cac_05_whose_load_failed_gives_the_lease_back_and_the_next_caller_has_it_at_once(cache: Any) -> None:
    tag = key()
    found(cache, tag, token="one")
    cache.abandon(tag, "n", "another")
    assert isinstance(found(cache, tag, token="two"), Busy)
    cache.abandon(tag, "n", "one")
    assert found(cache, tag, token="two") == Miss()
    assert not cache.store(tag, "n", "one", Loaded("v"), LONG)


def test_a_lease_that_ran_out_goes_to_the_next_and_its_first_holder_stores_nothing(cache: Any) -> None:
    tag = key()
    cache.fetch(tag, "n", "one", SHORT, None)
    time.sleep(PAST)
    assert found(cache, tag, token="two") == Miss()
    assert not cache.prolong(tag, "n", "one", TTL)
    assert not cache.store(tag, "n", "one", Loaded("late"), LONG)
    assert cache.store(tag, "n", "two", Loaded("v"), LONG)


def test_a_lease_that_ran_out_and_that_nobody_took_is_still_good_for_its_load(cache: Any) -> None:
    tag = key()
    cache.fetch(tag, "n", "one", SHORT, None)
    time.sleep(PAST)
    assert cache.prolong(tag, "n", "one", SHORT)
    time.sleep(PAST)
    assert cache.store(tag, "n", "one", Loaded("v"), LONG)


def test_cac_05_a_prolonged_lease_holds_others_back_beyond_its_first_end(cache: Any) -> None:
    tag = key()
    cache.fetch(tag, "n", "one", SHORT, None)
    assert cache.prolong(tag, "n", "one", TTL)
    time.sleep(PAST)
    assert isinstance(found(cache, tag, token="two"), Busy)


def test_past_its_soft_time_one_caller_refreshes_and_the_others_get_the_old_value(cache: Any) -> None:
    old = Loaded("old", Version(1))
    tag = kept(cache, old, AGED)
    time.sleep(0.01)
    answer = found(cache, tag, token="one")
    assert isinstance(answer, Stale)
    assert answer.entry == old
    assert timedelta(0) < answer.left <= TTL
    assert found(cache, tag, token="two") == Hit(old, refreshing=True)
    assert cache.store(tag, "n", "one", Loaded("new", Version(1)), LONG)
    assert found(cache, tag, token="two") == Hit(Loaded("new", Version(1)))


def test_i37_past_its_hard_time_an_entry_is_missing_whatever_else_its_tag_holds(cache: Any) -> None:
    tag = kept(cache, Loaded("old", Version(9)), Lives(SHORT, SHORT))
    kept(cache, Loaded("other"), tag=tag, name="other")
    time.sleep(PAST)
    assert found(cache, tag, token="one") == Miss()
    # Nothing is known any more of what it was.
    assert cache.store(tag, "n", "one", Loaded("source", Version(8)), LONG)


def test_i37_a_reader_that_knows_of_a_version_gets_nothing_lower(cache: Any) -> None:
    tag = kept(cache, Loaded("v", Version(7)))
    assert found(cache, tag, at_least=Version(7)) == Hit(Loaded("v", Version(7)))
    assert found(cache, tag, at_least=Version(8), token="one") == Miss()
    assert isinstance(found(cache, tag, at_least=Version(1, epoch=1), token="two"), Busy)
    assert found(cache, tag) == Hit(Loaded("v", Version(7)))
    assert cache.store(tag, "n", "one", Loaded("w", Version(10)), LONG)  # 10 > 8, also as text
    assert found(cache, tag, at_least=Version(8)) == Hit(Loaded("w", Version(10)))
    unversioned = kept(cache, Loaded("v"))
    assert found(cache, unversioned, at_least=Version(0)) == Miss()


def test_a_refresh_never_steps_back_and_gives_its_lease_back_when_it_would(cache: Any) -> None:
    tag = kept(cache, Loaded("v10", Version(10)), AGED)
    time.sleep(0.01)
    assert isinstance(found(cache, tag, token="one"), Stale)
    assert not cache.store(tag, "n", "one", Loaded("v9", Version(9)), LONG)
    assert isinstance(found(cache, tag, token="two"), Stale)
    assert cache.store(tag, "n", "two", Loaded("v10 again", Version(10)), LONG)


def test_cac_03_below_the_floor_of_an_invalidation_nothing_is_stored(cache: Any) -> None:
    tag = kept(cache, Loaded("v8", Version(8)))
    cache.finish([Tag(tag, Version(10))], [])

    def stores(number: int, epoch: int = 0) -> bool:
        found(cache, tag, token="one")
        return bool(cache.store(tag, "n", "one", Loaded("v", Version(number, epoch)), LONG))

    assert not stores(9)
    assert not stores(2)
    cache.finish([Tag(tag, Version(3))], [])  # a late one lowers no floor
    cache.finish([Tag(tag)], [])
    assert not stores(9)
    assert stores(10)
    cache.finish([Tag(tag, Version(3))], [])
    assert stores(11)
    cache.finish([Tag(tag)], [])  # it is at least what was kept
    assert not stores(10)
    assert stores(0, epoch=1)
    cache.finish([Tag(tag, Version(12))], [])
    assert not stores(12)
    assert stores(1, epoch=1)


def test_under_a_floor_what_has_no_version_is_stored_by_its_token_alone(cache: Any) -> None:
    tag = key()
    cache.finish([Tag(tag, Version(5))], [])
    kept(cache, Loaded("v"), tag=tag)
    assert found(cache, tag) == Hit(Loaded("v"))


def test_a_floor_is_gone_after_its_time(cache: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (memory_cache, redis_cache):
        monkeypatch.setattr(module, "AFTERLIFE", SHORT)
    tag = key()
    cache.finish([Tag(tag, Version(5))], [])
    kept(cache, Loaded("v"), tag=tag, name="other")  # the tag outlives its floor
    time.sleep(PAST)
    kept(cache, Loaded("v4", Version(4)), tag=tag)


def test_cac_03_a_put_moves_an_entry_forward_and_an_older_one_that_comes_late_changes_nothing(cache: Any) -> None:
    tag = kept(cache, Loaded("v9", Version(9)))
    assert cache.put(tag, "n", Loaded("v10", Version(10)), LONG)
    assert not cache.put(tag, "n", Loaded("v9", Version(9)), LONG)
    assert found(cache, tag) == Hit(Loaded("v10", Version(10)))
    assert cache.put(tag, "n", Loaded("v10", Version(10)), LONG)  # the reply to the first was lost
    assert cache.put(tag, "n", Loaded(None, Version(11)), LONG)
    assert found(cache, tag) == Hit(Loaded(None, Version(11)))


def test_a_put_creates_nothing_for_nobody_knows_whether_it_is_old(cache: Any) -> None:
    tag = key()
    assert not cache.put(tag, "n", Loaded("v5", Version(5)), LONG)
    assert found(cache, tag, token="one") == Miss()
    # A reader that loads meanwhile may have read what was there before the put.
    assert not cache.put(tag, "n", Loaded("v5", Version(5)), LONG)
    assert not cache.store(tag, "n", "one", Loaded("v4", Version(4)), LONG)
    unversioned = kept(cache, Loaded("v"))
    assert not cache.put(unversioned, "n", Loaded("v5", Version(5)), LONG)
    assert found(cache, unversioned) == Miss()
    with pytest.raises(Refused):
        cache.put(tag, "n", Loaded("v"), LONG)


def test_i36_a_put_revokes_the_token_of_a_refresh_that_may_have_read_before_it(cache: Any) -> None:
    tag = kept(cache, Loaded("v1", Version(1)), AGED)
    time.sleep(0.01)
    assert isinstance(found(cache, tag, token="one"), Stale)
    assert cache.put(tag, "n", Loaded("v2", Version(2)), LONG)
    assert not cache.store(tag, "n", "one", Loaded("v1"), LONG)
    assert found(cache, tag) == Hit(Loaded("v2", Version(2)))


@pytest.mark.parametrize("first", [1, LARGE])
def test_cac_03_versions_delivered_in_any_order_end_with_the_highest(cache: Any, first: int) -> None:
    random = Random(first)  # noqa: S311 - repeatable
    delivered = [Loaded(f"v{number}", Version(first + number)) for number in (7, 6, 7, 8)]
    for _ in range(200 if first == 1 else 20):
        tag = kept(cache, Loaded("v5", Version(first + 5)))
        for entry in random.sample(delivered, len(delivered)):
            cache.put(tag, "n", entry, LONG)
        assert found(cache, tag) == Hit(Loaded("v8", Version(first + 8)))
    assert cache.put(tag, "n", Loaded(None, Version(first + 8)), LONG)  # deleted
    assert cache.put(tag, "n", Loaded("anew", Version(1, epoch=1)), LONG)
    assert not cache.put(tag, "n", delivered[3], LONG)
    assert found(cache, tag) == Hit(Loaded("anew", Version(1, epoch=1)))


def test_a_discarded_name_is_forgotten_with_its_token_and_its_tag_keeps_the_rest(cache: Any) -> None:
    tag = kept(cache, Loaded("v"))
    kept(cache, Loaded("w"), tag=tag, name="other")
    cache.discard(tag, "n")
    assert found(cache, tag, token="one") == Miss()
    cache.discard(tag, "n")
    assert not cache.store(tag, "n", "one", Loaded("v"), LONG)
    assert cache.fetch(tag, "other", "r", TTL, None) == Hit(Loaded("w"))


def test_finishing_nothing_twice_is_harmless(cache: Any) -> None:
    cache.finish([Tag(key())], [(key(), "nobody")])


def test_one_exchange_may_span_many_slots(cache: Any) -> None:
    names = [kept(cache, Loaded("v")) for _ in range(20)]
    assert all(acquired(cache, name, "a", TTL) for name in names)
    cache.finish([Tag(name) for name in names], [(name, "a") for name in names])
    assert all(found(cache, name) == Miss() for name in names)
    assert all(acquired(cache, name, "b", TTL) for name in names)


def test_no_key_is_without_expiry_and_none_ends_before_what_it_holds(valkey: Valkey) -> None:
    connection = Connection(valkey.host, valkey.port, tls=False, cluster=False, wait=PATIENCE)
    cache: Any = Whole(RedisStore(connection), RedisCache(connection))
    tag = key()
    with Redis(port=valkey.port) as redis:

        def left() -> float:
            return int(redis.pttl(tag_key(tag))) / 1000

        cache.fetch(tag, "n", "one", TTL, None)
        assert 75 < left() <= 80  # the lease, and as long again as its token is good
        cache.store(tag, "n", "one", Loaded("v", Version(1)), Lives(TTL, timedelta(seconds=600)))
        assert 590 < left() <= 600
        cache.fetch(tag, "other", "one", TTL, None)
        cache.store(tag, "other", "one", Loaded("v"), LONG)
        assert 590 < left() <= 600
        cache.finish([Tag(tag)], [])
        assert 55 < left() <= 60
        cache.finish([Tag(tag, Version(4))], [])
        cache.put(tag, "n", Loaded("v", Version(5)), LONG)
        cache.discard(tag, "n")
        assert 55 < left() <= 60
        cache.prolong(tag, "n", "one", TTL)
        cache.abandon(tag, "n", "one")
        assert 55 < left() <= 60


STEP = 3_600_000  # milliseconds that the server's clock is set back


def set_back(valkey: Valkey, tag: str, field: str, moments: int) -> None:
    """Make a field look as if it was written before the server's clock was set back by an hour."""
    with Redis(port=valkey.port, decode_responses=True) as redis:
        words = str(redis.hget(tag_key(tag), field)).split(" ")
        later = [str(int(word) + STEP) for word in words[:moments]]
        redis.hset(tag_key(tag), field, " ".join(later + words[moments:]))


def test_i37_what_was_written_before_the_servers_clock_was_set_back_is_missing(valkey: Valkey) -> None:
    connection = Connection(valkey.host, valkey.port, tls=False, cluster=False, wait=PATIENCE)
    cache: Any = Whole(RedisStore(connection), RedisCache(connection))
    tag = kept(cache, Loaded("old", Version(9)))
    set_back(valkey, tag, "mn", 3)
    assert found(cache, tag, token="one") == Miss()
    set_back(valkey, tag, "tn", 2)  # a lease of it keeps nobody waiting for an hour, and its load may be an hour old
    assert found(cache, tag, token="two") == Miss()
    assert not cache.store(tag, "n", "one", Loaded("late"), LONG)
    assert cache.store(tag, "n", "two", Loaded("v"), LONG)
    assert found(cache, tag) == Hit(Loaded("v"))


def test_a_tag_of_thousands_of_entries_is_freed_beside_the_commands_of_others(valkey: Valkey) -> None:
    connection = Connection(valkey.host, valkey.port, tls=False, cluster=False, wait=PATIENCE)
    store, entries, tag = RedisStore(connection), RedisCache(connection), key()
    with Redis(port=valkey.port) as redis:
        redis.config_set("lazyfree-lazy-user-del", "no")  # as it is in older servers
        kept(entries, Loaded("v"), tag=tag)
        redis.hset(tag_key(tag), mapping={f"v{number}": "x" * 100 for number in range(3000)})
        before = int(redis.info("memory")["lazyfreed_objects"])
        store.finish([Tag(tag)], [])
        assert not redis.exists(tag_key(tag))
        deadline = time.monotonic() + 10
        while int(redis.info("memory")["lazyfreed_objects"]) == before:
            assert time.monotonic() < deadline
            time.sleep(0.01)


@pytest.mark.parametrize(
    "name", ["", "0", "-1", "1e3", "n", "f", "m", "a b", "%41", "A", "é\n\0{}", "\ud83d", "x" * 5000]
)
def test_any_text_is_a_name_of_an_entry_and_of_a_tag_and_no_two_are_one(cache: Any, name: str) -> None:
    entry, tag = Loaded(name if name.isascii() else "v", Version(7)), f"{key()}{name}"
    kept(cache, Loaded("another"), tag=tag, name=f"{name}'")
    kept(cache, entry, tag=tag, name=name)
    assert cache.fetch(tag, name, "r", TTL, None) == Hit(entry)
    assert cache.fetch(tag, f"{name}'", "r", TTL, None) == Hit(Loaded("another"))
    cache.finish([Tag(f"{tag}'")], [])
    assert cache.fetch(tag, name, "r", TTL, None) == Hit(entry)
    cache.discard(tag, name)
    assert cache.fetch(tag, name, "r", TTL, None) == Miss()


def test_a_tag_that_is_always_in_use_does_not_grow_with_what_has_passed(valkey: Valkey) -> None:
    cache = RedisCache(Connection(valkey.host, valkey.port, tls=False, cluster=False, wait=PATIENCE))
    tag = key()
    moment = timedelta(milliseconds=1)
    kept(cache, Loaded("v"), tag=tag)
    for number in range(300):
        kept(cache, Loaded("v", Version(number)), Lives(moment, moment), tag=tag, name=f"passing-{number}")
    with Redis(port=valkey.port) as redis:
        assert int(redis.hlen(tag_key(tag))) < 100
    assert found(cache, tag) == Hit(Loaded("v"))


VERSIONS = st.sampled_from([None, Version(2), Version(10), Version(LARGE), Version(LARGE + 1), Version(1, epoch=1)])
NAMES, CALLERS = st.sampled_from(["a", "b"]), st.sampled_from(["one", "two", "three"])
MOMENT = timedelta(milliseconds=1)
LEASES = st.sampled_from([TTL, TTL, MOMENT])
ENTRIES = st.builds(Loaded, st.sampled_from([None, "", "v", "w"]), VERSIONS)
LIVES = st.sampled_from([LONG, LONG, AGED, Lives(MOMENT, MOMENT)])
COMMANDS = st.one_of(
    st.tuples(st.just("fetch"), NAMES, CALLERS, LEASES, VERSIONS),
    st.tuples(st.just("fetch"), NAMES, CALLERS, LEASES, st.none()),
    st.tuples(st.just("store"), NAMES, CALLERS, ENTRIES, LIVES),
    st.tuples(st.just("prolong"), NAMES, CALLERS, LEASES),
    st.tuples(st.just("abandon"), NAMES, CALLERS),
    st.tuples(st.just("put"), NAMES, ENTRIES.filter(lambda entry: entry.version is not None), LIVES),
    st.tuples(st.just("discard"), NAMES),
    st.tuples(st.just("drop"), VERSIONS),
)


def outcome(cache: Any, tag: str, command: tuple[Any, ...]) -> object:
    """What the command answers; of what is left of a time only that it is."""
    kind, *arguments = command
    if kind == "drop":
        return cache.finish([Tag(tag, *arguments)], [])
    answer = getattr(cache, kind)(tag, *arguments)
    match answer:
        case Busy():
            return "busy"
        case Stale(entry=entry):
            return ("stale", entry)
        case _:
            return answer


@pytest.mark.parametrize("kind", ["valkey", "cluster"])
def test_the_memory_twin_answers_every_sequence_of_commands_as_the_server_does(
    kind: str, request: pytest.FixtureRequest
) -> None:
    server: Valkey = request.getfixturevalue(kind)
    connection = Connection(server.host, server.port, tls=False, cluster=kind == "cluster", wait=PATIENCE)
    both = MemoryCache(SystemClock()), Whole(RedisStore(connection), RedisCache(connection))

    @settings(max_examples=200, deadline=None)
    @given(st.lists(COMMANDS, min_size=1, max_size=25))
    def agree(commands: list[tuple[Any, ...]]) -> None:
        tag = key()
        for command in commands:
            twin, real = (outcome(cache, tag, command) for cache in both)
            assert twin == real, command
            if not {MOMENT, AGED, Lives(MOMENT, MOMENT)}.isdisjoint(command[1:]):
                time.sleep(0.004)  # what ends at once has ended for both

    agree()


def test_threads_do_not_wait_for_each_other_to_find_a_cluster_gone() -> None:
    hole = socket.create_server(("127.0.0.1", 0))
    store = RedisStore(Connection("127.0.0.1", hole.getsockname()[1], tls=False, cluster=True))
    refused = []

    def ask() -> None:
        with pytest.raises(CacheUnavailable):
            acquired(store, "k", "t", TTL)
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

        def connection() -> Connection:
            return Connection(server.host, server.port, tls=False, cluster=cluster)

        store, entries = (
            RedisStore(connection()),
            RedisCache(connection()),
        )  # of a breaker each, so that all calls are tried
        calls: list[Callable[[], object]] = [
            lambda: acquired(store, "k", "t", TTL),
            lambda: store.finish([Tag("t")], []),
            lambda: entries.fetch("t", "n", "r", TTL, None),
            lambda: entries.store("t", "n", "r", Loaded("v"), LONG),
            lambda: entries.prolong("t", "n", "r", TTL),
            lambda: RedisCache(connection()).abandon("t", "n", "r"),
            lambda: RedisCache(connection()).put("t", "n", Loaded("v", Version(1)), LONG),
            lambda: RedisCache(connection()).discard("t", "n"),
        ]
        for call in calls:
            with pytest.raises(CacheUnavailable):
                call()
        if not cluster:
            server.start()
            assert acquired(store, "k", "t", TTL)
