"""The stack in one look, as `tahan status` tells it: the picture, live, and the same as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ops.console.picture import drawn
from ops.stack.standing import look, receives, stands
from shared.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from werkzeug.wrappers import Response

    from ops.console.visit import Visit


def stack(visit: Visit) -> Response:
    """The picture."""
    deployed = visit.stack
    seen = look(deployed, deployed.workers(), visit.tools)
    edges = _edges(visit)
    gates = {
        name: {"told": stands(gate), "is_down": gate["down_for_s"] is not None}
        for name, gate in (seen["gates"] or {}).items()
    }
    rows = [{**row, "told": receives(row)[0], "grave": receives(row)[1]} for row in seen["workers"]]
    picture = drawn(rows, edges, gates, has_door="Api" in deployed.outputs)
    return visit.page(
        "stack", over=False, picture=picture, rows=rows, gates=gates, knows_gates=seen["gates"] is not None
    )


def _edges(visit: Visit) -> Mapping[str, float]:
    try:
        return visit.house.running.edges(visit.tools.clock.now())
    except Unavailable as error:
        visit.tools.tell(f"What the front door took and the outbox gave is not known: {error}")
        return {}


ROUTES = (("/", stack, "GET"),)
