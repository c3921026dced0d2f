"""One worker: how it stands, and its brake."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ops.console.visit import mark_of
from ops.exits import CommandError, Exit
from ops.stack.brake import USUAL, Pausing, paused, read_time, resumed
from ops.stack.standing import look, receives
from shared.rounds.brake import Brake, BrakeState

if TYPE_CHECKING:
    from collections.abc import Callable

    from werkzeug.wrappers import Response

    from ops.console.visit import Visit

FORMS = ("pause", "resume")
WORDS = ("time", "why", "name")  # that people type into them


def one(visit: Visit, worker: str) -> Response:
    """How it stands, and the forms that brake and free it."""
    return _page(visit, worker)


def pause(visit: Visit, worker: str) -> Response:
    """Let it receive nothing more for a while."""
    return _agreed(visit, worker, "pause", _pause)


def resume(visit: Visit, worker: str) -> Response:
    """Let it receive again."""
    return _agreed(visit, worker, "resume", _resume)


def _page(visit: Visit, worker: str, form: str = "", problem: str | None = None) -> Response:
    """The page; where something typed into one of its forms was wrong, with that and what was typed."""
    (declared,) = visit.stack.workers(worker)
    (row,) = look(visit.stack, [declared], visit.tools)["workers"]
    jobs = [
        {
            "name": job.name,
            "version": job.version,
            "attempts": job.retry.max_attempts,
            "objective": job.max_latency.total_seconds(),
        }
        for job in declared.jobs
    ]
    return visit.page(
        "worker",
        200 if problem is None else 409,
        row=row,
        told=receives(row),
        jobs=jobs,
        usual=USUAL,
        seen=mark_of(visit.tools.brakes(visit.stack.jobs_table).read(worker)),
        problem=problem,
        words={each: visit.typed(dict.fromkeys(WORDS, ""), form == each) for each in FORMS},
    )


def _agreed(visit: Visit, worker: str, form: str, change: Callable[[Visit, str], None]) -> Response:
    try:
        _confirm(visit, worker)
        change(visit, worker)
    except CommandError as error:
        if error.status is not Exit.REFUSED:
            raise
        return _page(visit, worker, form, str(error))
    return visit.to(f"/workers/{worker}")


def _confirm(visit: Visit, worker: str) -> None:
    if visit.word("name") != worker:
        message = f"Type {worker} to agree. Nothing was changed."
        raise CommandError(message, Exit.REFUSED)


def _pause(visit: Visit, worker: str) -> None:
    why, now = visit.need("why", "The reason, which the audit keeps,"), visit.tools.clock.now()
    until = now + read_time(visit.word("time") or USUAL)
    seen = _as_seen(visit, worker)
    brake = Brake(BrakeState.PAUSED, visit.tools.caller(), why, now, until, by_hand=True)
    paused(visit.tools, visit.stack, Pausing(worker, brake, seen))


def _resume(visit: Visit, worker: str) -> None:
    why = visit.need("why", "The reason, which the audit keeps,")
    resumed(visit.tools, visit.stack, worker, why, _as_seen(visit, worker))


def _as_seen(visit: Visit, worker: str) -> Brake | None:
    """The brake, if it is the one that the page has shown.

    Raises:
        CommandError: it is another.
    """
    brake = visit.tools.brakes(visit.stack.jobs_table).read(worker)
    visit.demand_seen(mark_of(brake))
    return brake


ROUTES = (
    ("/workers/<worker>", one, "GET"),
    ("/workers/<worker>/pause", pause, "POST"),
    ("/workers/<worker>/resume", resume, "POST"),
)
