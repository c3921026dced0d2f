"""An edit of a dead letter: the old payload, masked, in a field; then the difference; then the new job in its place."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from functions.registry import WORKER_OF
from ops.console.deeds import Underway
from ops.console.looks import AT_ONCE, forget, letter
from ops.console.pages.letters import pretty, waits
from ops.exits import CommandError, Exit
from ops.jobs.payloads import shown_payload
from ops.letters.edit import checked, current_payload, job_of, put
from ops.letters.found import one_letter
from shared.declaring.masked import HIDDEN
from shared.errors import Malformed
from shared.strict_json import json_text, read_json

if TYPE_CHECKING:
    from werkzeug.wrappers import Response

    from ops.console.visit import Visit
    from ops.letters.desk import Desk
    from ops.letters.dossier import Dossier
    from ops.letters.edit import Edit
    from shared.job import Job


@dataclass(frozen=True, slots=True)
class Edited:
    """An edit that people have been shown."""

    found: tuple[Desk, Dossier]
    edit: Edit


def form(visit: Visit, worker: str, name: str) -> Response:
    """The old payload as the current version has it, in a field."""
    found = letter(visit, worker, name)
    if isinstance(found, Underway):
        return waits(visit, found)
    _, dossier = found
    types = [job for job, declared in WORKER_OF.items() if declared.name == worker]
    wanted = visit.word("job_type") or (dossier.job_type if dossier.job_type in types else types[0])
    job = job_of(dossier, wanted, worker)
    text = pretty(_shown(dossier, job, current_payload(dossier, job)))
    return visit.page("edit", text=text, job_type=job.name, types=types, hidden=HIDDEN)


def difference(visit: Visit, worker: str, name: str) -> Response:
    """What the edit would change, checked as the consumer will check it; nothing is sent."""
    found = letter(visit, worker, name)
    if isinstance(found, Underway):
        found.wait(60)
        found = one_letter([] if found.found is None else found.found.found, name)
    _, dossier = found
    job = job_of(dossier, visit.word("job_type"), worker)
    old = current_payload(dossier, job)
    text = visit.need("payload", "The new payload")
    edit = checked(dossier, job, with_hidden(text, _shown(dossier, job, old), old), visit.word("key"))
    now, after = (pretty(_shown(dossier, job, each)).splitlines() for each in (old, edit.message.payload))
    lines = list(difflib.unified_diff(now, after, "now", "after", lineterm=""))
    return visit.page(
        "difference",
        worker=worker,
        name=name,
        lines=lines,
        edit=edit,
        plan=visit.house.plans.keep(Edited(found, edit)),
        changed=edit.changed,
    )


def agree(visit: Visit) -> Response:
    """Put the new job in the letter's place."""
    why = visit.need("why", "The reason, which the audit keeps,")
    plans, name = visit.house.plans, visit.word("plan")
    edited = plans.take(name)
    if not isinstance(edited, Edited):
        message = "This is another plan than what was shown: edit again. Nothing was changed."
        raise CommandError(message, Exit.REFUSED)
    tools, told = visit.house.speaking()
    stack, operation = visit.stack, edited.edit.operation

    def work(deed: Underway) -> None:
        deed.facts = {"why": why, "stage": "sends the new job"}
        try:
            put(tools, stack, edited.found, edited.edit, why)
        except Exception:
            # It may be said again: the same job is sent under the same key, or the letter is gone.
            plans.keep(edited, name)
            raise
        deed.facts = {**deed.facts, "stage": "is over", "counts": {"new_operation": operation}}

    letter_id = edited.found[1].delivery.message_id
    deed = visit.house.deeds.begin(f"Edit of letter {letter_id}", "edit", told, work)
    forget(visit)
    if not deed.wait(AT_ONCE):
        return visit.to(f"/deeds/{deed.name}")
    if deed.problem is not None:
        raise CommandError(deed.problem, deed.status)
    return visit.page("edited", operation=operation)


def with_hidden(new: str, shown: str, old: str) -> str:
    """The new payload with the old value wherever people left what is hidden as it was shown. No value moves to another place.

    Raises:
        CommandError: it is no JSON, or says that a value is hidden where none was, or where it cannot be told which.
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
    if not _hides(new):
        return new
    if new == HIDDEN and shown == HIDDEN:
        return old
    if isinstance(new, dict) and isinstance(shown, dict):
        return {name: _within(value, shown.get(name), old.get(name)) for name, value in new.items()}
    if isinstance(new, list) and isinstance(shown, list) and _are_in_place(new, shown):
        return [_within(*three) for three in zip(new, shown, old, strict=True)]
    message = (
        f"The new payload says {HIDDEN} where no hidden value was shown, or in a list whose entries were changed or moved: write"
        " the value itself. Nothing was changed."
    )
    raise CommandError(message, Exit.REFUSED)


def _are_in_place(new: list[Any], shown: list[Any]) -> bool:
    """Whether the entries that hide something are as they were shown: one that was moved would take another's value."""
    return len(new) == len(shown) and all(
        entry == before for entry, before in zip(new, shown, strict=True) if _hides(entry)
    )


def _hides(value: Any) -> bool:  # noqa: ANN401 - JSON
    """Whether something in it stands for a hidden value."""
    if isinstance(value, dict):
        return any(map(_hides, value.values()))
    return any(map(_hides, value)) if isinstance(value, list) else value == HIDDEN


def _shown(dossier: Dossier, job: Job[Any, Any], payload: str) -> str:
    """A payload as it may be shown: what either schema hides is hidden, the letter's own and that of the type that is wanted."""
    own = shown_payload(dossier.job_type, payload) if dossier.job_type != job.name else payload
    return shown_payload(job.name, own)


ROUTES = (
    ("/letters/<worker>/<name>/edit", form, "GET"),
    ("/letters/<worker>/<name>/edit", difference, "POST"),
    ("/change/edit", agree, "POST"),
)
