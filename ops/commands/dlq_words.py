"""What the commands of the desk share: which workers and letters are meant, and how letters are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ops.exits import CommandError, Exit
from ops.letters.desk import Desk
from ops.letters.selection import Selection
from ops.tables import text_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from ops.letters.desk import Mapper
    from ops.letters.dossier import Dossier
    from ops.stack.deployed import Deployed
    from ops.tools import Tools


def selection_of(options: argparse.Namespace) -> Selection:
    """What was said about which letters are meant.

    Raises:
        CommandError: an empty id, with which every other one begins.
    """
    if not all(options.ids):
        message = "An ID is empty: every letter would be meant. Say --all for that."
        raise CommandError(message, Exit.REFUSED)
    return Selection(
        tuple(options.ids),
        getattr(options, "group", None),
        getattr(options, "job_type", None),
        getattr(options, "reason", None),
        getattr(options, "since", None),
        getattr(options, "until", None),
        getattr(options, "everything", False),
    )


def demand_words(selection: Selection) -> None:
    """Refuse to change what nobody has named.

    Raises:
        CommandError: with what can be said.
    """
    if selection.is_empty:
        message = "Say which letters: an ID, --group, --job-type, --reason, --since or --until, or --all."
        raise CommandError(message, Exit.REFUSED)


def desks(worker: str | None, tools: Tools, stack: Deployed, side_by_side: Mapper = map) -> list[Desk]:
    """The desk of this worker, or those of all.

    Raises:
        CommandError: there is no such worker.
    """
    workers = stack.workers() if worker is None else stack.workers(worker)
    records = tools.operator(stack.jobs_table)
    return [
        Desk(
            each.name,
            tools.dead_letters(stack.queue_of(each.name), stack.dead_letters_of(each.name)),
            records,
            tools.clock,
            side_by_side,
        )
        for each in workers
    ]


def one_letter(found: Sequence[tuple[Desk, Dossier]], name: str) -> tuple[Desk, Dossier]:
    """The one letter that was found.

    Raises:
        CommandError: there is none, or more than one.
    """
    if not found:
        message = f"There is no dead letter {name!r} at this moment: somebody else may be looking at it for a minute."
        raise CommandError(message, Exit.ABSENT)
    if len(found) > 1:
        names = "".join(f"\n  {desk.worker} {dossier.delivery.message_id}" for desk, dossier in found)
        message = f"{name!r} may mean any of these, say more of it:{names}"
        raise CommandError(message, Exit.REFUSED)
    return found[0]


def row_of(dossier: Dossier) -> dict[str, object]:
    """A letter in a list; nothing personal."""
    return {
        "message_id": dossier.delivery.message_id,
        "worker": dossier.worker,
        "job_type": dossier.job_type,
        "died_at": text_of(dossier.died_at),
        "came_by": dossier.kind.value,
        "reason": dossier.reason,
        "signature": dossier.signature,
        "attempts": dossier.attempts,
        "deaths": dossier.death,
        "operation_id": dossier.operation,
    }
