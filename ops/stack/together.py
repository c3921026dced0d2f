"""Calls side by side: what takes long on the way is worth waiting for together."""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ops.letters.desk import Mapper

THREADS = 10  # as many as a client keeps connections


@contextlib.contextmanager
def side_by_side() -> Iterator[Mapper]:
    """A mapper over some threads; all of its calls are over when the block is."""
    with ThreadPoolExecutor(THREADS) as pool:
        yield pool.map
