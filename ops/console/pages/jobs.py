"""Jobs: sought by what people know of them, and one with all that happened to it; operations, as `tahan operation list` has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from functions.registry import JOB_TYPES
from ops.console.pages.letters import pretty
from ops.console.visit import mark_of
from ops.exits import CommandError, Exit
from ops.jobs.changes import cancelling, done, releasing
from ops.jobs.owned import page_of, row_of
from ops.jobs.search import Sought, resources_of, some_jobs
from ops.jobs.shown import failure_told, in_full, job_named, name_of, record_named
from ops.jobs.watching import share_of, told
from shared.intake.operation import OperationStatus, operation_of
from shared.job_record import SYSTEM, Status, record_id

if TYPE_CHECKING:
    from datetime import datetime

    from werkzeug.wrappers import Response

    from ops.console.visit import Visit
    from ops.jobs.changes import Deed
    from ops.jobs.job_records import Seen

ON_A_PAGE = 25
STATES = [state.value for state in OperationStatus]
WORDS = ("state", "job_type", "key", "resource", "owner")


def jobs(visit: Visit) -> Response:
    """Jobs that are sought; one that is named is shown at once."""
    named = visit.word("id")
    if named is not None:
        return visit.to(f"/jobs/op_{record_named(named)}")
    words = {name: visit.word(name) for name in WORDS}
    if words["key"] and words["job_type"] and not (words["state"] or words["owner"] or words["resource"]):
        record = record_id(SYSTEM, words["job_type"], words["key"])
        if visit.tools.jobs(visit.stack.jobs_table).look(record) is not None:
            return visit.to(f"/jobs/op_{record}")
    if words["state"] not in {None, *STATES}:
        message = f"There is no state {words['state']!r}. There are {', '.join(STATES)}."
        raise CommandError(message, Exit.REFUSED)
    state = None if words["state"] is None else OperationStatus(words["state"])
    sought = Sought(state, words["job_type"], words["key"], words["resource"], words["owner"])
    some = some_jobs(sought, ON_A_PAGE, visit.word("next"), visit.tools, visit.stack)
    now = visit.tools.clock.now()
    said = {name: given for name, given in words.items() if given is not None}
    return visit.page(
        "jobs",
        rows=[{**row_of(seen.view, seen.created_at, now), "attempts": seen.view.attempts} for seen in some.jobs],
        read=some.read,
        next=None if some.next is None else urlencode({**said, "next": some.next}),
        words=words,
        states=STATES,
        job_types=sorted(JOB_TYPES.by_name),
    )


def one(visit: Visit, name: str) -> Response:
    """A job and all that happened to it."""
    seen = job_named(name, visit.tools, visit.stack)
    now = visit.tools.clock.now()
    whole = visit.word("payload") is not None
    fields = in_full(seen, now, whole=whole)
    if whole and fields.get("payload"):
        fields["payload"] = pretty(str(fields["payload"]))
    operation = operation_of(seen.view, now)
    return visit.page(
        "job",
        over=operation.is_final,
        facts=fields,
        steps=timeline(seen),
        operation=operation,
        share=share_of(seen),
        whole=whole,
        name=name,
        may_release=seen.view.status in {Status.RUNNING, Status.RETRYING},
        is_held=operation.status is OperationStatus.RUNNING,
        has_begun=seen.view.status is not Status.ACCEPTED or seen.view.begun_at is not None,
        job_id=seen.view.job_id or None,
        resources=resources_of(seen.view) if whole else (),
    )


def timeline(seen: Seen) -> list[dict[str, Any]]:
    """What happened to a job, the earliest first; of attempts those that were spent."""
    view = seen.view
    steps: list[tuple[datetime | None, str, str]] = [
        (seen.created_at, "accepted", "the job record was made"),
        (view.begun_at, "first attempt", "began"),
    ]
    for number, failure in enumerate(
        view.failures, 1 + max(0, view.attempts - len(view.failures)) if not view.replays else 1
    ):
        steps.append((failure.at, f"attempt {number} failed", failure_told(failure)))
    if view.checkpoints:
        steps.append((view.stepped_at, f"checkpoint {view.checkpoints}", "the last step that is committed"))
    if view.progress is not None:
        steps.append((view.progress.at, "progress", told(view.progress)))
    if view.replayed is not None:
        steps.append(
            (view.replayed.at, f"replay {view.replays}", f"under death {view.replayed.death}, by {view.replayed.by}")
        )
    steps.append((view.ended_at, view.status.value, "ended" if view.ended else "waits for a decision"))
    if not view.ended:
        steps += [
            (view.claim_until, "claim deadline", "until then an attempt holds it"),
            (view.not_before, "not before", "its next attempt waits until then"),
        ]
    known = [step for step in steps if step[0] is not None]
    return [{"at": at, "what": what, "told": more} for at, what, more in sorted(known, key=lambda step: str(step[0]))]


def operations(visit: Visit) -> Response:
    """An owner's jobs, newest first."""
    owner = visit.word("owner")
    rows, place = (
        ([], None) if owner is None else page_of(owner, ON_A_PAGE, visit.word("next"), visit.tools, visit.stack)
    )
    following = None if place is None or owner is None else urlencode({"owner": owner, "next": place})
    return visit.page("operations", rows=rows, owner=owner, next=following)


def ask_release(visit: Visit, name: str) -> Response:
    """What a release would do."""
    return _asked(visit, name, "release", _releasing(visit, name))


def ask_cancel(visit: Visit, name: str) -> Response:
    """What a cancellation would do."""
    return _asked(visit, name, "cancel", _cancelling(visit, name))


def release(visit: Visit, name: str) -> Response:
    """Let the next attempt begin."""
    return _done(visit, name, _releasing(visit, name))


def cancel(visit: Visit, name: str) -> Response:
    """End a job as cancelled."""
    return _done(visit, name, _cancelling(visit, name))


def _releasing(visit: Visit, name: str) -> Deed:
    seen = job_named(name, visit.tools, visit.stack)
    return releasing(seen.view, visit.tools, visit.stack, although_held=visit.word("insist") is not None)


def _cancelling(visit: Visit, name: str) -> Deed:
    seen = job_named(name, visit.tools, visit.stack)
    return cancelling(seen.view, visit.tools, visit.stack, although_begun=visit.word("insist") is not None)


def _asked(visit: Visit, name: str, what: str, deed: Deed) -> Response:
    return visit.page(
        "job_change",
        name=name,
        what=what,
        state=deed.view.status.value,
        job_type=deed.view.names.get("job_type"),
        insist=visit.word("insist"),
        seen=_mark(deed),
        operation=name_of(deed.view),
    )


def _done(visit: Visit, name: str, deed: Deed) -> Response:
    why = visit.need("why", "The reason, which the audit keeps,")
    visit.demand_seen(_mark(deed))
    done(deed, why, visit.tools, visit.stack)
    return visit.to(f"/jobs/{name}")


def _mark(deed: Deed) -> str:
    """Of what an operator decides by; a heartbeat that goes on changes nothing of it."""
    view = deed.view
    return mark_of(view.status, view.attempts, view.death, view.token)


ROUTES = (
    ("/jobs", jobs, "GET"),
    ("/operations", operations, "GET"),
    ("/jobs/<name>", one, "GET"),
    ("/jobs/<name>/release", ask_release, "GET"),
    ("/jobs/<name>/cancel", ask_cancel, "GET"),
    ("/jobs/<name>/release", release, "POST"),
    ("/jobs/<name>/cancel", cancel, "POST"),
)
