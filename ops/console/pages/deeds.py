"""Changes of this run of the console, and how each stands; and the answer to whoever asks whether the console is alive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from werkzeug.wrappers import Response

from ops.exits import CommandError, Exit

if TYPE_CHECKING:
    from ops.console.deeds import Underway
    from ops.console.visit import Visit

CHANGES = ("replay", "discard", "edit")
CAN_STOP = ("replay", "discard")  # between two of their steps; an edit is one


def deeds(visit: Visit) -> Response:
    """All changes, the newest first."""
    return visit.page("deeds", over=False, deeds=visit.house.deeds.all(*CHANGES))


def one(visit: Visit, name: str) -> Response:
    """How one stands."""
    deed = _named(visit, name)
    is_over = deed.is_over  # before its facts, so that the last ones are shown
    return visit.page(
        "deed",
        over=is_over,
        deed=deed,
        facts=deed.facts,
        lines=deed.lines,
        is_over=is_over,
        may_stop=deed.kind in CAN_STOP,
    )


def stop(visit: Visit, name: str) -> Response:
    """Stop one where it next tells how it stands."""
    _named(visit, name).stop()
    return visit.to(f"/deeds/{name}")


def alive(visit: Visit) -> Response:
    """Yes."""
    del visit
    return Response("yes", mimetype="text/plain")


def _named(visit: Visit, name: str) -> Underway:
    deed = visit.house.deeds.get(name)
    if deed is None:
        message = "There is no such change in this run of the console: the audit has those of earlier ones."
        raise CommandError(message, Exit.ABSENT)
    return deed


ROUTES = (
    ("/deeds", deeds, "GET"),
    ("/deeds/<name>", one, "GET"),
    ("/deeds/<name>/stop", stop, "POST"),
    ("/alive", alive, "GET"),
)
