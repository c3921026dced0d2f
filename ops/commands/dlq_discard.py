"""`tahan dlq discard`: what is chosen is counted, agreed to, kept in an archive, and thrown away; nothing else is touched."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from ops.commands.agreement import agreed
from ops.commands.dlq_words import found_in, selection_of
from ops.exits import Exit
from ops.explained import explained
from ops.letters.discard import Thrower, Thrown, throw
from ops.letters.found import MOST, demand_words, row_of

if TYPE_CHECKING:
    import argparse

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
    with explained():
        stack = tools.deployed(options.stack)
        thrown = throw(tools, stack, found, Thrower(selection.told, options.why, Path(options.archive)))
    tools.show({**thrown.fields, "archive": options.archive}, as_json=options.json)
    if cut:
        tools.tell("There may be more that is chosen: say the same again.")
    if thrown.fates[Thrown.NOT_DELETED]:
        return Exit.NOT_DONE
    if thrown.missing:
        tools.tell("What is gone was thrown away by others, or somebody looks at it for a minute: say the same again.")
    return Exit.LEFT if thrown.missing or thrown.left else Exit.DONE
