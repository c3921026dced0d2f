"""An edit of a dead letter, told to the audit: the old payload, the check, the change; for the command line and the console alike."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from functions.registry import WORKERS
from ops.audit import Change, audited
from ops.commands.dlq_words import one_letter
from ops.commands.enqueue import refusal
from ops.exits import CommandError, Exit
from ops.letters.edit import edited, put_in_place
from shared.declaring.upgrading import upgraded
from shared.errors import ClaimLost, Malformed, Refused
from shared.wire.deposits import Mark

if TYPE_CHECKING:
    from ops.letters.desk import Desk
    from ops.letters.dossier import Dossier
    from ops.letters.edit import Edit
    from ops.stack.deployed import Deployed
    from ops.tools import Tools
    from shared.job import Job


def job_of(dossier: Dossier, wanted: str | None, worker: str) -> Job[Any, Any]:
    """The job type of the new job: the letter's own, or the one that people name for a letter that cannot be read.

    Raises:
        CommandError: the worker has none of that name.
    """
    name = wanted or dossier.job_type
    for declared in WORKERS:
        for job in declared.jobs:
            if declared.name == worker and job.name == name:
                return job
    message = f"The worker {worker} has no job type {name!r}: name one with --job-type."
    raise CommandError(message, Exit.REFUSED)


def current_payload(dossier: Dossier, job: Job[Any, Any]) -> str:
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


def checked(dossier: Dossier, job: Job[Any, Any], text: str, key: str | None) -> Edit:
    """The edit, checked as the consumer will check it; nothing is sent.

    Raises:
        CommandError: the payload or the key would be refused, field by field.
    """
    try:
        edit = edited(dossier, job, text, key)
    except Malformed as error:
        raise CommandError(refusal(job, error), Exit.REFUSED) from error
    except Refused as error:
        raise CommandError(str(error), Exit.REFUSED) from error
    if dossier.message is not None and edit.message.idempotency_key == dossier.message.idempotency_key:
        message = "The new job needs a key of its own: the old one's names the old payload for ever."
        raise CommandError(message, Exit.REFUSED)
    return edit


def put(tools: Tools, stack: Deployed, found: tuple[Desk, Dossier], edit: Edit, why: str) -> None:
    """Put the new job in the place of the letter, told to the audit.

    Raises:
        CommandError: the letter is not there at this moment, or its job has changed meanwhile.
        Refused: the job must not be replaced now; nothing was sent.
        NotSent: SQS did not do all of it; the message says what.
        Unavailable: a store did not answer.
    """
    desk, dossier = found
    name = dossier.delivery.message_id
    with audited(tools, stack, Change("dlq edit", edit.operation, why, [name])) as outcome:
        with desk.taken(lambda each: each.delivery.message_id == name, 1) as survey:
            _, held = one_letter([(desk, each) for each in survey.dossiers], name)
            try:
                put_in_place(desk, held, edit, survey.gone)
            except ClaimLost as error:
                message = "The new job is sent, but the old one has changed meanwhile: look at both."
                raise CommandError(message) from error
        outcome.counts["edited"] = 1
