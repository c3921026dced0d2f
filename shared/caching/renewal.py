"""Keeps a refill lease alive for as long as its load takes."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

from shared.errors import CacheUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

RENEW_SHARE = 1 / 3  # of the lease, so that two renewals may fail
LAST_RENEWAL = timedelta(seconds=1)  # one request may be on its way when the load ends


class Renewal(Protocol):
    """Calls `renew` every so often while its block runs, until `renew` says no."""

    def __call__(self, renew: Callable[[], bool], every: timedelta) -> AbstractContextManager[None]:
        """Begin with the block; the first call is due after `every`."""
        ...


@contextmanager
def in_a_thread(renew: Callable[[], bool], every: timedelta) -> Iterator[None]:
    """Renew in a thread that lives only as long as the block: Lambda freezes whatever stays behind."""
    ended = threading.Event()

    def go_on() -> None:
        while not ended.wait(every.total_seconds()):
            try:
                if not renew():
                    return
            except CacheUnavailable:
                continue  # maybe next time

    thread = threading.Thread(target=go_on, name="cache-renewal", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(LAST_RENEWAL.total_seconds())
