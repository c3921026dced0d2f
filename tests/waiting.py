"""Waiting for what other threads and processes do: looked at again and again, and never for ever."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

LOOK_EVERY = 0.02


def until(happened: Callable[[], bool], patience: float = 60.0, what: str = "what was waited for") -> None:
    """Look until it has happened; `patience` in seconds.

    Raises:
        AssertionError: it has not happened in this time.
    """
    deadline = time.monotonic() + patience
    while not happened():
        assert time.monotonic() < deadline, f"{what} did not happen within {patience} s"
        time.sleep(LOOK_EVERY)
