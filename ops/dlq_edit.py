"""`tahan dlq edit`: another payload for a dead letter, as a new job that names the old one."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from functions.registry import WORKERS
from ops.audit import Change, audited
from ops.dlq_look import MOST, found_in
from ops.dlq_words import one_letter
from ops.edit import edited, put_in_place
from ops.enqueue import payload_text, refusal
from ops.exits import CommandError, Exit
from ops.explained import explained
from ops.payloads import shown_payload
from shared.deposits import Mark
from shared.errors import ClaimLost, Malformed, Refused
from shared.strict_json import indented
from shared.upgrading import upgraded

if TYPE_CHECKING:
    import argparse

    from ops.dossier import Dossier
    from ops.edit import Edit
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
    job = _job_of(dossier, wanted, desk.worker)
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
    name = dossier.delivery.message_id
    with explained():
        stack = tools.deployed(options.stack)
        with audited(tools, stack, Change("dlq edit", edit.operation, options.why, [name])) as outcome:
            with desk.taken(lambda each: each.delivery.message_id == name, 1) as survey:
                _, held = one_letter([(desk, each) for each in survey.dossiers], options.ids[0])
                try:
                    put_in_place(desk, held, edit, survey.gone)
                except ClaimLost as error:
                    message = "The new job is sent, but the old one has changed meanwhile: look at both."
                    raise CommandError(message) from error
            outcome.counts["edited"] = 1
    tools.show({**fields, "sent": True}, as_json=options.json)
    return Exit.DONE


def _job_of(dossier: Dossier, wanted: str | None, worker: str) -> Job[Any, Any]:
    name = wanted or dossier.job_type
    for declared in WORKERS:
        for job in declared.jobs:
            if declared.name == worker and job.name == name:
                return job
    message = f"The worker {worker} has no job type {name!r}: name one with --job-type."
    raise CommandError(message, Exit.REFUSED)


def _current(dossier: Dossier, job: Job[Any, Any]) -> str:
    """The old payload as the new job's version has it; as it is where nothing leads there.

    Raises:
        CommandError: it is deposited.
    """
    message = dossier.message
    if message is None:
        return "{}"
    if Mark.read(message.payload) is not None:
        text = "The old payload is deposited in S3: give the whole new one with --payload-file, or from standard input."
        raise CommandError(text, Exit.REFUSED)
    if message.job_type != job.name or not job.oldest <= message.version:
        return message.payload
    with contextlib.suppress(Malformed):
        return upgraded(job, message.version, message.payload)
    return message.payload


def _edit(options: argparse.Namespace, tools: Tools, dossier: Dossier, job: Job[Any, Any]) -> Edit:
    if options.payload is None and options.payload_file is None and not options.from_stdin:
        text = tools.edit(indented(_current(dossier, job)))
    else:
        text = payload_text(options, tools)
    try:
        edit = edited(dossier, job, text, options.key)
    except Malformed as error:
        raise CommandError(refusal(job, error), Exit.REFUSED) from error
    except Refused as error:
        raise CommandError(str(error), Exit.REFUSED) from error
    if dossier.message is not None and edit.message.idempotency_key == dossier.message.idempotency_key:
        message = "The new job needs a key of its own: the old one's names the old payload for ever."
        raise CommandError(message, Exit.REFUSED)
    return edit
