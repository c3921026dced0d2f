"""`tahan dlq list`, `groups`, `show` and `export`: they change nothing, and hide letters from others for seconds only."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ops.commands.dlq_words import found_in
from ops.exits import CommandError, Exit
from ops.letters.archive import Archive
from ops.letters.dossier import grouped
from ops.letters.found import MOST, TOLD, described, one_letter, row_of
from ops.tables import add_row, in_table, show_failures, table_of, text_of

if TYPE_CHECKING:
    import argparse

    from ops.tools import Tools

SHOWN_ID = 13  # characters of a message id, which name it well enough


def run_list(options: argparse.Namespace, tools: Tools) -> Exit:
    """List letters."""
    found, cut = found_in(options, tools, options.limit)
    rows = [row_of(dossier) for _, dossier in found]
    if options.json:
        tools.show({"letters": rows, "cut": cut}, as_json=True)
        return Exit.DONE
    if rows:
        table = table_of("id", "worker", "job type", "died", "came by", "reason", "signature", "tries", "deaths")
        for (_, dossier), row in zip(found, rows, strict=True):
            add_row(
                table,
                str(row["message_id"])[:SHOWN_ID],
                dossier.worker,
                dossier.job_type,
                in_table(dossier.died_at),
                TOLD[dossier.kind],
                dossier.reason,
                dossier.signature,
                str(dossier.attempts),
                str(dossier.death),
            )
        tools.out.print(table)
    _tell_cut(tools, cut=cut, found=len(rows))
    return Exit.DONE


def run_groups(options: argparse.Namespace, tools: Tools) -> Exit:
    """Show groups."""
    found, cut = found_in(options, tools, options.limit)
    groups = grouped(dossier for _, dossier in found)
    if options.json:
        rows = [
            {
                "worker": group.worker,
                "job_type": group.job_type,
                "signature": group.signature,
                "reason": group.reason,
                "came_by": group.kind.value,
                "error": group.error,
                "dependency": group.dependency,
                "letters": group.letters,
                "first": text_of(group.first),
                "last": text_of(group.last),
            }
            for group in groups
        ]
        tools.show({"groups": rows, "cut": cut}, as_json=True)
        return Exit.DONE
    if groups:
        table = table_of("letters", "worker", "job type", "came by", "reason", "signature", "last", "error")
        for group in groups:
            add_row(
                table,
                str(group.letters),
                group.worker,
                group.job_type,
                TOLD[group.kind],
                group.reason,
                group.signature,
                in_table(group.last),
                group.error or "",
            )
        tools.out.print(table)
    _tell_cut(tools, cut=cut, found=len(found))
    return Exit.DONE


def run_show(options: argparse.Namespace, tools: Tools) -> Exit:
    """Show one letter's dossier."""
    found, _ = found_in(options, tools, MOST)
    _, dossier = one_letter(found, options.ids[0])
    fields = described(dossier, whole=options.payload)
    if options.json:
        tools.show(fields, as_json=True)
        return Exit.DONE
    history = fields.pop("failures")
    tools.show(fields, as_json=False)
    show_failures(tools, history)  # type: ignore[arg-type]
    return Exit.DONE


def run_export(options: argparse.Namespace, tools: Tools) -> Exit:
    """Write letters to a file."""
    found, cut = found_in(options, tools, options.limit)
    try:
        with Archive(Path(options.file)) as archive:
            archive.add([dossier for _, dossier in found])
    except OSError as error:
        message = f"{options.file} cannot be written ({type(error).__name__})."
        raise CommandError(message, Exit.REFUSED) from error
    tools.show({"exported": len(found), "file": options.file, "cut": cut}, as_json=options.json)
    return Exit.DONE


def _tell_cut(tools: Tools, *, cut: bool, found: int) -> None:
    if cut:
        tools.tell("There may be more: the limit or the time to read was over.")
    elif not found:
        tools.tell("There are none. (Letters that somebody else looks at are hidden for a minute.)")
