"""The cache's invariants over many simulated runs, and without its guards the runs that show it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from shared.backends.memory.cache import MemoryCache
from tests.simulation.cached import CachedWorld
from tests.simulation.history import Violation

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from shared.caching.store import Loaded

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


def refreshing(monkeypatch: pytest.MonkeyPatch, is_kept: Callable[[bool, bool], bool]) -> None:
    """Let a refresh keep its entry if `is_kept` says so of: there was one before, and nothing newer was seen."""
    drop = MemoryCache._drop

    def keeps(self: MemoryCache, tag: Any) -> None:
        fresh = tag.fresh
        before = None if fresh is None else self._kept(self._tagged(tag.name), fresh.name)
        drop(self, tag.bare)
        tagged = self._tagged(tag.name)
        if fresh is not None and is_kept(before is not None, fresh.entry.version == tagged.floor):
            self._keep(tagged, fresh.name, fresh.entry, fresh.lives)

    monkeypatch.setattr(MemoryCache, "_drop", keeps)


def test_the_checks_notice_a_refresh_that_creates(monkeypatch: pytest.MonkeyPatch) -> None:
    refreshing(monkeypatch, lambda _, is_newest: is_newest)
    assert found() == "I36"


def test_the_checks_notice_a_refresh_that_steps_back(monkeypatch: pytest.MonkeyPatch) -> None:
    refreshing(monkeypatch, lambda was_there, _: was_there)
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
