"""Calls side by side: what takes long on the way is worth waiting for together."""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

THREADS = 10  # as many as a client keeps connections


class Mapper(Protocol):
    """Does something for each of some values and gives the results in their order; perhaps side by side, as `map` does not."""

    def __call__(self, work: Callable[[Any], Any], values: Iterable[Any], /) -> Iterable[Any]:
        """Do the work for each."""
        ...


@contextlib.contextmanager
def side_by_side() -> Iterator[Mapper]:
    """A mapper over some threads; all of its calls are over when the block is."""
    with ThreadPoolExecutor(THREADS) as pool:
        yield pool.map
