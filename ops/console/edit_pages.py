"""An edit of a dead letter: the old payload, masked, in a field; then the difference; then the new job in its place."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from functions.registry import WORKERS
from ops.console.deeds import Deed
from ops.console.letter_pages import pretty, waits
from ops.console.looks import forget, letter
from ops.dlq_words import one_letter
from ops.editing import checked, current_payload, job_of, put
from ops.exits import CommandError, Exit
from ops.payloads import shown_payload
from shared.errors import Malformed
from shared.masked import HIDDEN
from shared.strict_json import json_text, read_json

if TYPE_CHECKING:
    from werkzeug.wrappers import Response

    from ops.console.visit import Visit
    from ops.desk import Desk
    from ops.dossier import Dossier
    from ops.edit import Edit


@dataclass(frozen=True, slots=True)
class Edited:
    """An edit that people have been shown."""

    found: tuple[Desk, Dossier]
    edit: Edit


def form(visit: Visit, worker: str, name: str) -> Response:
    """The old payload as the current version has it, in a field."""
    found = letter(visit, worker, name)
    if isinstance(found, Deed):
        return waits(visit, found)
    _, dossier = found
    types = [job.name for each in WORKERS if each.name == worker for job in each.jobs]
    wanted = visit.word("job_type") or (dossier.job_type if dossier.job_type in types else types[0])
    job = job_of(dossier, wanted, worker)
    text = pretty(shown_payload(job.name, current_payload(dossier, job)))
    return visit.page("edit", worker=worker, name=name, text=text, job_type=job.name, types=types, hidden=HIDDEN)


def difference(visit: Visit, worker: str, name: str) -> Response:
    """What the edit would change, checked as the consumer will check it; nothing is sent."""
    found = letter(visit, worker, name)
    if isinstance(found, Deed):
        found.wait(60)
        found = one_letter([] if found.found is None else found.found.found, name)
    _, dossier = found
    job = job_of(dossier, visit.word("job_type"), worker)
    old = current_payload(dossier, job)
    text = visit.need("payload", "The new payload")
    edit = checked(dossier, job, with_hidden(text, shown_payload(job.name, old), old), visit.word("key"))
    now, after = (pretty(shown_payload(job.name, each)).splitlines() for each in (old, edit.message.payload))
    lines = list(difflib.unified_diff(now, after, "now", "after", lineterm=""))
    return visit.page(
        "difference",
        worker=worker,
        name=name,
        lines=lines,
        edit=edit,
        plan=visit.house.plans.keep(Edited(found, edit)),
        key=edit.message.idempotency_key,
        changed=edit.changed,
    )


def agree(visit: Visit) -> Response:
    """Put the new job in the letter's place."""
    why = visit.need("why", "The reason, which the audit keeps,")
    edited = visit.house.plans.take(visit.word("plan"))
    if not isinstance(edited, Edited):
        message = "This is another plan than what was shown: edit again. Nothing was changed."
        raise CommandError(message, Exit.REFUSED)
    put(visit.tools, visit.stack, edited.found, edited.edit, why)
    forget(visit)
    return visit.page("edited", operation=edited.edit.operation)


def with_hidden(new: str, shown: str, old: str) -> str:
    """The new payload with the old value wherever people left what is hidden as it was shown. No value moves to another place.

    Raises:
        CommandError: it is no JSON.
    """
    try:
        parsed, _ = read_json(new)
    except Malformed as error:
        message = f"The new payload is no JSON: {error.detail}. Nothing was changed."
        raise CommandError(message, Exit.REFUSED) from error
    if HIDDEN not in new:
        return new
    return json_text(_within(parsed, read_json(shown)[0], read_json(old)[0]))


def _within(new: Any, shown: Any, old: Any) -> Any:  # noqa: ANN401 - JSON
    if new == HIDDEN and shown == HIDDEN:
        return old
    if isinstance(new, dict) and isinstance(shown, dict) and isinstance(old, dict):
        return {name: _within(value, shown.get(name), old.get(name)) for name, value in new.items()}
    if isinstance(new, list) and isinstance(shown, list) and isinstance(old, list):
        return [_within(*three) for three in zip(new, shown, old, strict=False)] + new[len(old) :]
    return new


ROUTES = (
    ("/letters/<worker>/<name>/edit", form, "GET"),
    ("/letters/<worker>/<name>/edit", difference, "POST"),
    ("/change/edit", agree, "POST"),
)
