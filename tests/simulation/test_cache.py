"""The cache's invariants over many simulated runs, and without its guards the runs that show it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from shared.backends.memory_cache import MemoryCache
from tests.simulation.cached import CachedWorld
from tests.simulation.history import Violation

if TYPE_CHECKING:
    import pytest

    from shared.cache_store import Loaded

SEEDS = 25


def test_i36_i37_no_reader_sees_what_it_must_not_whatever_dies_freezes_or_is_forgotten() -> None:
    counts: Counter[str] = Counter()
    for seed in range(SEEDS):
        world = CachedWorld(seed)
        world.run()
        counts.update({metric: number for (metric, _), number in world.telemetry.counts.items()})
        counts["reads"] += world.reads
    assert counts["reads"] > SEEDS * 100
    seen = {"hit", "miss", "stale_served", "rebuilt", "waited", "bypassed", "refused", "load_failed"}
    assert {f"cache_{metric}" for metric in seen} <= set(counts)


def found(seeds: int = SEEDS) -> str:
    """What the first run shows that shows anything."""
    for seed in range(seeds):
        try:
            CachedWorld(seed).run()
        except Violation as violation:
            return str(violation)[:3]
    return ""


def test_the_checks_notice_an_invalidation_that_leaves_refill_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    drop = MemoryCache._drop

    def leaves_tokens(self: MemoryCache, tag: Any) -> None:
        before = self._tagged(tag.name)
        drop(self, tag)
        after = self._tagged(tag.name)
        after.refills, after.ends = before.refills, max(before.ends, after.ends)

    monkeypatch.setattr(MemoryCache, "_drop", leaves_tokens)
    assert found() == "I36"


def test_the_checks_notice_a_put_that_creates(monkeypatch: pytest.MonkeyPatch) -> None:
    put = MemoryCache.put

    def creates(self: MemoryCache, tag: str, name: str, entry: Loaded, lives: Any) -> bool:
        tagged = self._tagged(tag)
        if self._kept(tagged, name) is None:
            return self._keep(tagged, name, entry, lives)
        return put(self, tag, name, entry, lives)

    monkeypatch.setattr(MemoryCache, "put", creates)
    assert found() == "I36"


def test_the_checks_notice_entries_that_end_never(monkeypatch: pytest.MonkeyPatch) -> None:
    fetch = MemoryCache.fetch

    def endless(self: MemoryCache, tag: str, name: str, *rest: Any) -> Any:
        tagged = self._tagged(tag)
        if name in tagged.entries:
            tagged.entries[name] = replace(tagged.entries[name], soft=1e9, hard=1e9)
            tagged.ends = 1e9
        return fetch(self, tag, name, *rest)

    monkeypatch.setattr(MemoryCache, "fetch", endless)
    monkeypatch.setattr(CachedWorld, "_write", _committed_without_invalidation)
    assert found() == "I37"


def _committed_without_invalidation(self: CachedWorld) -> None:
    while True:
        self.scheduler.sleep(self.random.uniform(10, 60))
        self.source.committed[self.random.choice(("a", "b"))].append(self.scheduler.now)
