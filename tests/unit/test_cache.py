"""Reading through: the cache decides nothing, and its loss costs only time."""

from __future__ import annotations

from typing import Any

from shared.backends.memory import MemoryCache
from shared.cache import Cache
from shared.errors import CacheUnavailable
from tests.world import Counter, FakeClock


class Source:
    """Counts how often it is asked."""

    def __init__(self, *values: str) -> None:
        self.values = list(values)
        self.loads = 0

    def __call__(self) -> str:
        self.loads += 1
        return self.values.pop(0)


def test_a_value_is_loaded_once_also_when_it_is_falsy() -> None:
    cache = Cache(MemoryCache(FakeClock()), Counter())
    source = Source("null")
    assert [cache.read("t", "n", source) for _ in range(3)] == ["null"] * 3
    assert source.loads == 1


def test_after_an_invalidation_the_source_is_asked_anew() -> None:
    store = MemoryCache(FakeClock())
    cache = Cache(store, Counter())
    source = Source('"old"', '"new"')
    cache.read("t", "n", source)
    store.finish(["t"], [])
    assert cache.read("t", "n", source) == '"new"'


def test_i36_a_load_that_an_invalidation_overtook_is_not_kept() -> None:
    store = MemoryCache(FakeClock())
    cache = Cache(store, Counter())

    def overtaken() -> str:
        store.finish(["t"], [])
        return '"old"'

    assert cache.read("t", "n", overtaken) == '"old"'
    assert cache.read("t", "n", Source('"new"')) == '"new"'


def test_cac_10_without_redis_every_read_goes_to_the_source() -> None:
    class Gone:
        def __getattr__(self, name: str) -> Any:
            def fail(*arguments: Any) -> Any:
                raise CacheUnavailable

            return fail

    source = Source("1", "2")
    cache = Cache(Gone(), Counter())
    assert [cache.read("t", "n", source) for _ in range(2)] == ["1", "2"]
