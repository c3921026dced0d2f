"""One worker: how it stands, and its brake."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ops.console.visit import mark_of
from ops.exits import CommandError, Exit
from ops.stack.brake import LONGEST, USUAL, Pausing, paused, read_time, resumed
from ops.stack.standing import look, receives
from shared.rounds.brake import Brake, BrakeState

if TYPE_CHECKING:
    from werkzeug.wrappers import Response

    from ops.console.visit import Visit


def worker(visit: Visit, name: str) -> Response:
    """How it stands, and the forms that brake and free it."""
    (declared,) = visit.stack.workers(name)
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
    seen = mark_of(visit.tools.brakes(visit.stack.jobs_table).read(name))
    return visit.page("worker", row=row, told=receives(row), jobs=jobs, usual=USUAL, longest=LONGEST, seen=seen)


def pause(visit: Visit, name: str) -> Response:
    """Let it receive nothing more for a while."""
    _confirm(visit, name)
    why, now = visit.need("why", "The reason, which the audit keeps,"), visit.tools.clock.now()
    seen = _as_seen(visit, name)
    until = now + read_time(visit.word("time") or USUAL)
    brake = Brake(BrakeState.PAUSED, visit.tools.caller(), why, now, until, by_hand=True)
    paused(visit.tools, visit.stack, Pausing(name, brake, seen))
    return visit.to(f"/workers/{name}")


def resume(visit: Visit, name: str) -> Response:
    """Let it receive again."""
    _confirm(visit, name)
    why = visit.need("why", "The reason, which the audit keeps,")
    seen = _as_seen(visit, name)
    resumed(visit.tools, visit.stack, name, why, seen)
    return visit.to(f"/workers/{name}")


def _as_seen(visit: Visit, name: str) -> Brake | None:
    """The brake, if it is the one that the page has shown.

    Raises:
        CommandError: it is another.
    """
    brake = visit.tools.brakes(visit.stack.jobs_table).read(name)
    visit.demand_seen(mark_of(brake))
    return brake


def _confirm(visit: Visit, name: str) -> None:
    visit.stack.workers(name)
    if visit.word("name") != name:
        message = f"Type {name} to agree. Nothing was changed."
        raise CommandError(message, Exit.REFUSED)


ROUTES = (
    ("/workers/<name>", worker, "GET"),
    ("/workers/<name>/pause", pause, "POST"),
    ("/workers/<name>/resume", resume, "POST"),
)
