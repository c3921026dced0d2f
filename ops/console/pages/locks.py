"""Locks that are held, as `tahan locks` tells them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ops.stack.locks import some_locks

if TYPE_CHECKING:
    from werkzeug.wrappers import Response

    from ops.console.visit import Visit


def locks(visit: Visit) -> Response:
    """Lock keys by their first letters."""
    start = visit.word("start") or ""
    answer = some_locks(visit.house.running, start)
    return visit.page("locks", over=False, start=start, rows=answer["locks"], complete=answer["complete"])


ROUTES = (("/locks", locks, "GET"),)
