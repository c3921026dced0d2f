"""`tahan dlq discard`: what is chosen is counted, agreed to, kept in an archive, and thrown away; nothing else is touched."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from ops.agreement import agreed
from ops.audit import Change, audited
from ops.discard import Archive, Discard, Thrown
from ops.dlq_look import MOST, found_in
from ops.dlq_words import demand_words, row_of, selection_of
from ops.exits import CommandError, Exit
from ops.explained import explained

if TYPE_CHECKING:
    import argparse

    from ops.desk import Desk
    from ops.dossier import Dossier
    from ops.tools import Tools


def run(options: argparse.Namespace, tools: Tools) -> Exit:
    """Discard.

    Raises:
        CommandError: the words are wrong, nobody agreed, the archive cannot be written, or a store does not answer.
    """
    selection = selection_of(options)
    demand_words(selection)
    found, cut = found_in(options, tools, MOST)
    if options.dry_run or not found:
        rows = [row_of(dossier) for _, dossier in found]
        tools.show(
            {"discarded": 0, "would": len(found), **({"letters": rows} if options.json else {})}, as_json=options.json
        )
        return Exit.DONE
    for (worker, reason), count in Counter((desk.worker, dossier.reason) for desk, dossier in found).most_common():
        tools.tell(f"{count:6}  {worker}  {reason}")
    agreed(tools, f"Discard these {len(found)} dead letters?", yes=options.yes)
    whole: Counter[Thrown] = Counter()
    left: list[tuple[Dossier, Thrown]] = []
    ids = [dossier.delivery.message_id for _, dossier in found]
    with explained():
        stack = tools.deployed(options.stack)
        with audited(tools, stack, Change("dlq discard", selection.told, options.why, ids)) as outcome:
            try:
                with Archive(Path(options.archive)) as archive:
                    for desk, only in _by_desk(found):
                        discard = Discard(desk, only, archive)
                        try:
                            with tools.busy(f"Archiving and discarding {len(only)} dead letters of {desk.worker} ..."):
                                discard.run()
                        finally:
                            whole.update(discard.fates)
                            left += discard.left
                            outcome.counts = {fate.value: count for fate, count in whole.items()}
            except OSError as error:
                message = f"The archive cannot be written ({type(error).__name__}): what is not in it is untouched."
                raise CommandError(message) from error
    missing = len(found) - whole.total()
    fields: dict[str, object] = {
        "discarded": whole[Thrown.DISCARDED],
        "left": {fate.value: count for fate, count in whole.items() if fate is not Thrown.DISCARDED} or None,
        "gone_meanwhile": missing or None,
        "archive": options.archive,
    }
    tools.show(fields, as_json=options.json)
    if cut:
        tools.tell("There may be more that is chosen: say the same again.")
    if whole[Thrown.NOT_DELETED]:
        return Exit.NOT_DONE
    if missing:
        tools.tell("What is gone was thrown away by others, or somebody looks at it for a minute: say the same again.")
    return Exit.LEFT if left or missing else Exit.DONE


def _by_desk(found: list[tuple[Desk, Dossier]]) -> list[tuple[Desk, frozenset[str]]]:
    names: dict[str, set[str]] = {}
    desks: dict[str, Desk] = {}
    for desk, dossier in found:
        desks[desk.worker] = desk
        names.setdefault(desk.worker, set()).add(dossier.delivery.message_id)
    return [(desks[worker], frozenset(chosen)) for worker, chosen in names.items()]
