"""`tahan dlq list`, `groups`, `show` and `export`: they change nothing, and hide letters from others for seconds only."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from functions.registry import WORKERS
from ops.commands.dlq_words import desks, one_letter, row_of, selection_of
from ops.exits import CommandError, Exit
from ops.explained import explained
from ops.jobs.payloads import shown_payload
from ops.letters.discard import Archive
from ops.letters.dossier import grouped
from ops.tables import add_row, failure_of, in_table, show_failures, table_of, text_of
from shared.dead_letters.dead_letter import Death, folded_in
from shared.errors import Malformed, NewerVersion
from shared.job import JobTypes
from shared.pipeline.run import read_run

if TYPE_CHECKING:
    import argparse

    from ops.letters.desk import Desk
    from ops.letters.dossier import Dossier
    from ops.letters.selection import Selection
    from ops.stack.deployed import Deployed
    from ops.tools import Tools

SHOWN_ID = 13  # characters of a message id, which name it well enough
MOST = 10_000
JOB_TYPES = JobTypes.of(*(job for worker in WORKERS for job in worker.jobs))
TOLD = {
    Death.FAILED: "failed",
    Death.NEVER_ATTEMPTED: "never attempted",
    Death.SILENT: "silent",
    Death.ENDED: "ended well",
}


def found_in(options: argparse.Namespace, tools: Tools, most: int) -> tuple[list[tuple[Desk, Dossier]], bool]:
    """The letters that are meant, of all workers that are meant; and whether there may be more.

    Raises:
        CommandError: AWS does not answer, or refuses.
    """
    selection = selection_of(options)
    with explained():
        stack = tools.deployed(options.stack)
    return found_by(tools, stack, selection, options.worker, most)


def found_by(
    tools: Tools, stack: Deployed, selection: Selection, worker: str | None, most: int
) -> tuple[list[tuple[Desk, Dossier]], bool]:
    """The letters that are chosen, all where nothing chooses; of all workers, or of one. And whether there may be more.

    At most `most` letters a worker are read.

    Raises:
        CommandError: there is no such worker, or AWS does not answer, or refuses.
    """
    found: list[tuple[Desk, Dossier]] = []
    cut = False
    with explained(), tools.side_by_side() as mapper:
        for desk in desks(worker, tools, stack, mapper):
            with tools.busy(f"Reading the dead letters of {desk.worker} ..."):
                survey = desk.look(most)
            cut = cut or survey.cut
            alone = replace(desk, side_by_side=map)  # for whoever goes on with it
            found += [
                (alone, dossier) for dossier in survey.dossiers if selection.is_empty or selection.chooses(dossier)
            ]
    return found, cut


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


def described(dossier: Dossier, *, whole: bool) -> dict[str, object]:
    """All that is known of a letter. Key and payload may hold what is personal: only if `whole`, and masked fields never."""
    view, facts, letter = dossier.view, dossier.facts, dossier.delivery
    own = {name for name in letter.attributes if name != "tahan.dead-letter"} | folded_in(letter).keys()
    private: dict[str, object] = {}
    if whole:
        message = dossier.message
        # A body that nobody can read may hold anything: its size and its hash tell it from others.
        private = {
            "idempotency_key": None if message is None else message.idempotency_key,
            "payload": None if message is None else shown_payload(message.job_type, message.payload),
        }
    return {
        **row_of(dossier),
        "came_by": f"{dossier.kind.value}: {MEANS[dossier.kind]}",
        "problem": dossier.problem,
        "error": facts.get("error"),
        "dependency": facts.get("dependency"),
        "first_failure": facts.get("first_failure"),
        "last_failure": facts.get("last_failure"),
        "received": letter.receive_count,
        "sent_at": text_of(letter.sent_at),
        "group": letter.group,
        "attributes": ", ".join(sorted(own)) or None,
        "resource": _resource(dossier),
        "trace_id": dossier.trace,
        "xray": letter.trace,
        "job_id": facts.get("job_id"),
        "job_stands": None if view is None else view.status.value,
        "replays": None if view is None else view.replays,
        "replayed_at": None if view is None or view.replayed is None else text_of(view.replayed.at),
        "replayed_by": None if view is None or view.replayed is None else view.replayed.by,
        "body_bytes": len(letter.body.encode(errors="surrogatepass")),
        "body_sha256": dossier.body_hash,
        **private,
        "failures": [] if view is None else [failure_of(failure) for failure in view.failures],
    }


MEANS = {
    Death.FAILED: "the consumer sent it, with its reason",
    Death.NEVER_ATTEMPTED: "SQS moved it, and no attempt was ever made: throttled, or killed before the claim",
    Death.SILENT: "SQS moved it after attempts that ended without a word",
    Death.ENDED: "SQS moved it, and its job had ended: a duplicate",
}


def _resource(dossier: Dossier) -> str | None:
    """What the job works on, as log lines name it: hashes of its lock keys."""
    try:
        run = read_run(dossier.delivery, JOB_TYPES, datetime.max.replace(tzinfo=UTC))
    except (Malformed, NewerVersion):
        return None
    return " ".join(run.resources) or None


def _tell_cut(tools: Tools, *, cut: bool, found: int) -> None:
    if cut:
        tools.tell("There may be more: the limit or the time to read was over.")
    elif not found:
        tools.tell("There are none. (Letters that somebody else looks at are hidden for a minute.)")
