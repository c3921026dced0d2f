"""Edits a dead letter: a new job with another payload, which names the old one; the old job ends and says which follows it.

The new job has a key of its own, derived from the old one, so that the same edit made twice is one job. Order: send, end the old job,
delete the letter.
"""

from __future__ import annotations

import contextlib
import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from functions.registry import JOB_TYPES, WORKER_OF
from ops.audit import Change, audited
from ops.exits import CommandError, Exit
from ops.jobs.payloads import refusal
from ops.letters.found import one_letter
from ops.letters.verdict import Fate, Finish, Leave, Reopen, Send, verdict_on
from shared.dead_letter import folded_in
from shared.declaring.upgrading import upgraded
from shared.delivery import DEAD_LETTER_ATTRIBUTE, ENCODING_ATTRIBUTE
from shared.desk.dead_letter_queue import Copy
from shared.desk.operator_records import Ending
from shared.errors import ClaimLost, Malformed, NotSent, Refused
from shared.failpoints import Failpoint, failpoint
from shared.job import JobTypes
from shared.job_record import SYSTEM, Status, operation_id, record_id
from shared.limits import check_message
from shared.message import KEY_LENGTH, Message, check_key, payload_of
from shared.producer import NotTaken
from shared.strict_json import json_text, read_json
from shared.wire.deposits import Mark
from shared.wire.parsing import read_message, typed_payload

if TYPE_CHECKING:
    from typing import Any

    from ops.letters.desk import Desk
    from ops.letters.dossier import Dossier
    from ops.stack.deployed import Deployed
    from ops.tools import Tools
    from shared.job import Job


@dataclass(frozen=True, slots=True)
class Edit:
    """A new job in place of a dead letter's.

    Attributes:
        changed: names of the payload's fields that differ, those of the new payload and of the old one alike.
    """

    message: Message
    changed: tuple[str, ...]

    @property
    def record(self) -> str:
        """The key of the new job's record."""
        return record_id(SYSTEM, self.message.job_type, self.message.idempotency_key)

    @property
    def operation(self) -> str:
        """The new job's operation id."""
        return operation_id(self.record)


def edited(dossier: Dossier, job: Job[Any, Any], payload: str, key: str | None) -> Edit:
    """Check a new payload as the consumer will check it.

    Args:
        dossier: the letter.
        job: its type, which is to know the payload.
        payload: JSON text.
        key: idempotency key of the new job; by default the old one with the number of the death.

    Raises:
        Malformed: what the consumer would refuse.
        Refused: SQS would refuse the message.
    """
    old = dossier.message
    text = payload_of(payload)
    death = max(dossier.death, 1)
    base = f"dead-letter/{dossier.delivery.message_id}" if old is None else old.idempotency_key
    suffix = f"/edited-{death}"
    if len(base) + len(suffix) > KEY_LENGTH:  # two long keys that begin alike stay two
        suffix = f"/{hashlib.sha256(base.encode()).hexdigest()}{suffix}"
    name = f"{base[: KEY_LENGTH - len(suffix)]}{suffix}" if key is None else key
    if old is None:
        message = Message(job.name, job.version, check_key(name), text, job_id=dossier.delivery.message_id)
    else:
        message = replace(
            old,
            version=job.version,
            idempotency_key=check_key(name),
            payload=text,
            job_id=dossier.record,
            record=None,
            run_at=None,
        )
    body = message.body()
    check_message(body, {})
    typed_payload(read_message(body), JobTypes.of(job))
    return Edit(message, _changed("{}" if old is None or Mark.read(old.payload) is not None else old.payload, text))


def _changed(old: str, new: str) -> tuple[str, ...]:
    before, after = (fields if isinstance(fields := read_json(text)[0], dict) else {} for text in (old, new))
    return tuple(sorted(name for name in before.keys() | after.keys() if before.get(name, ...) != after.get(name, ...)))


def put_in_place(desk: Desk, dossier: Dossier, edit: Edit, gone: set[str]) -> None:
    """Send the new job, end the old one, delete the letter that is held.

    Raises:
        Refused: the job must not be replaced now, or SQS refuses the message; nothing was sent.
        NotSent: SQS did not take it.
        ClaimLost: the old job has changed; the new one is sent all the same, and the letter stays.
        Unavailable: a store did not answer; the same command again goes on.
    """
    view = dossier.view
    verdict = verdict_on(dossier, desk.clock.now(), None)
    follows = view is not None and view.status is Status.FAILED and view.result == _followed_by(edit).result
    if isinstance(verdict, Leave | Finish) and not follows:
        because = {
            Fate.ENDED: "its job has ended: enqueue a new one",
            Fate.UNDER_WAY: "its job is under way",
            Fate.FINISHED: "a replay of it was taken up: `dlq replay` finishes it",
        }
        fate = Fate.FINISHED if isinstance(verdict, Finish) else verdict.fate
        message = f"The letter is not edited: {because.get(fate, fate.value)}."
        raise Refused(message)
    letter = dossier.delivery
    # The attributes stay, but for those that tell how to read the old body and how it died.
    attributes = {**letter.attributes, **folded_in(letter)}
    own = {name: value for name, value in attributes.items() if name not in {DEAD_LETTER_ATTRIBUTE, ENCODING_ATTRIBUTE}}
    (answer,) = desk.queue.send([Copy(edit.message.body(), own, letter.group, letter.trace, edit.record)])
    if isinstance(answer, NotTaken):
        message = f"SQS did not take the new job ({answer.code}): the letter is as it was."
        raise NotSent(message)
    failpoint(Failpoint.EDITED_SENT)
    if view is not None and isinstance(verdict, Reopen | Send):
        desk.records.end(view, _followed_by(edit), desk.clock.now())
        failpoint(Failpoint.ENDED_BY_PEOPLE)
    deleted = desk.queue.delete([letter])
    gone |= deleted
    failpoint(Failpoint.LETTERS_DELETED)
    if not deleted:
        message = "The new job is sent, and SQS did not delete the letter: say the same again."
        raise NotSent(message)


def _followed_by(edit: Edit) -> Ending:
    return Ending(Status.FAILED, json_text({"code": "edited", "detail": edit.operation}))


def job_of(dossier: Dossier, wanted: str | None, worker: str) -> Job[Any, Any]:
    """The job type of the new job: the letter's own, or the one that people name for a letter that cannot be read.

    Raises:
        CommandError: the worker has none of that name.
    """
    name = wanted or dossier.job_type
    declared = WORKER_OF.get(name)
    if declared is not None and declared.name == worker:
        return JOB_TYPES.by_name[name]
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
    with audited(tools, stack, Change("dlq edit", edit.operation, why, [name])) as ended:
        with desk.taken(lambda each: each.delivery.message_id == name, 1) as survey:
            _, held = one_letter([(desk, each) for each in survey.dossiers], name)
            try:
                put_in_place(desk, held, edit, survey.gone)
            except ClaimLost as error:
                message = "The new job is sent, but the old one has changed meanwhile: look at both."
                raise CommandError(message) from error
        ended.counts["edited"] = 1
