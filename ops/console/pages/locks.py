"""Locks that are held, as `tahan locks` tells them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ops.commands.locks import USUAL

if TYPE_CHECKING:
    from werkzeug.wrappers import Response

    from ops.console.visit import Visit


def locks(visit: Visit) -> Response:
    """Lock keys by their first letters."""
    start = visit.word("start") or ""
    answer = visit.house.running.ask_lookout({"look": "locks", "start": start, "most": USUAL})
    return visit.page("locks", over=False, start=start, rows=answer["locks"], complete=answer["complete"])


ROUTES = (("/locks", locks, "GET"),)
