"""Cache entries, as the suites of every cache store ask for them."""

from __future__ import annotations

import itertools
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from shared.caching.lives import Lives
from shared.caching.store import Loaded, Miss, Stale

if TYPE_CHECKING:
    from shared.tag import Version


fresh = itertools.count()
TTL = timedelta(seconds=20)
SHORT = timedelta(milliseconds=120)
LONG = Lives(TTL, TTL)
PAST = 0.16  # seconds after which what was SHORT is over


def key() -> str:
    return f"order/{next(fresh)}{{}}é"


def kept(cache: Any, entry: Loaded, lives: Lives = LONG, *, tag: str = "", name: str = "n") -> str:
    """Fill an entry as a reader does; give its tag."""
    tag = tag or key()
    assert isinstance(cache.fetch(tag, name, "filler", TTL, None), Miss | Stale)
    assert cache.store(tag, name, "filler", entry, lives)
    return tag


def found(cache: Any, tag: str, *, token: str = "looker", at_least: Version | None = None) -> Any:
    return cache.fetch(tag, "n", token, TTL, at_least)
