"""Many dead letters for the console's pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shared.dead_letter import dossier
from shared.outcome import DeadLettered
from tests.ops.letters import QUEUE, TRANSIENT, UNKNOWN_ORDER
from tests.world import World

if TYPE_CHECKING:
    from tests.ops.desk import Desk


def many(desk: Desk, number: int) -> None:
    """So many letters that nobody can read, of two causes."""
    delivery = World.of().delivery("no json")
    for each in range(number):
        failure = TRANSIENT if each % 3 else UNKNOWN_ORDER
        desk.queues[QUEUE].dead_letter(delivery, dossier(delivery, DeadLettered(failure, 1)))
