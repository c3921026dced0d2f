"""`tahan dlq edit`: another payload for a dead letter, as a new job that names the old one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ops.commands.dlq_words import found_in
from ops.commands.enqueue import payload_text
from ops.exits import Exit
from ops.explained import explained
from ops.jobs.payloads import shown_payload
from ops.letters.edit import checked, current_payload, job_of, put
from ops.letters.found import MOST, one_letter
from shared.strict_json import indented

if TYPE_CHECKING:
    import argparse

    from ops.letters.dossier import Dossier
    from ops.letters.edit import Edit
    from ops.tools import Tools
    from shared.job import Job


def run(options: argparse.Namespace, tools: Tools) -> Exit:
    """Edit one letter.

    Raises:
        CommandError: there is no such letter, the payload would be refused, or a store does not answer.
    """
    options.group = options.reason = options.since = options.until = None
    wanted, options.job_type = options.job_type, None
    found, _ = found_in(options, tools, MOST)
    desk, dossier = one_letter(found, options.ids[0])
    job = job_of(dossier, wanted, desk.worker)
    edit = _edit(options, tools, dossier, job)
    fields: dict[str, object] = {
        "job_type": job.name,
        "old_operation_id": dossier.operation,
        "operation_id": edit.operation,
        "changed": ", ".join(edit.changed) or "nothing",
        "payload": shown_payload(job.name, edit.message.payload) if options.payload is not None else None,
    }
    if options.dry_run:
        tools.show({**fields, "sent": False}, as_json=options.json)
        return Exit.DONE
    with explained():
        put(tools, tools.deployed(options.stack), (desk, dossier), edit, options.why)
    tools.show({**fields, "sent": True}, as_json=options.json)
    return Exit.DONE


def _edit(options: argparse.Namespace, tools: Tools, dossier: Dossier, job: Job[Any, Any]) -> Edit:
    if options.payload is None and options.payload_file is None and not options.from_stdin:
        text = tools.edit(indented(current_payload(dossier, job)))
    else:
        text = payload_text(options, tools)
    return checked(dossier, job, text, options.key)
