"""Replay and discard of dead letters: counted first, shown as a dry run, agreed to with the number, done behind the pages."""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from ops.console.behind import discarding, replaying
from ops.console.looks import AT_ONCE, forget, fresh_look
from ops.console.pages.letters import ON_A_PAGE, WORDS, chosen, waits
from ops.exits import CommandError, Exit
from ops.letters.audited_replay import Wanted, would
from ops.letters.found import MOST, demand_words, row_of
from ops.letters.replay import CANARY, PATIENCE, RATE, Care
from ops.letters.verdict import MOST_DEATHS

if TYPE_CHECKING:
    from collections.abc import Callable

    from werkzeug.wrappers import Response

    from ops.console.deeds import Underway
    from ops.console.visit import Visit
    from ops.letters.selection import Selection

LONGEST_WATCH, FASTEST = 86_400, 10_000
# What the fields of the form show at first.
USUAL = {
    "why": "",
    "number": "",
    "canary": str(CANARY),
    "rate": f"{RATE:.0f}",
    "watch_for": f"{PATIENCE.total_seconds():.0f}",
    "force": "",
    "no_watch": "",
    "cancel_redrive": "",
}


@dataclass(frozen=True, slots=True)
class Counted:
    """What was chosen, in which words, and the look that counts it."""

    what: str
    selection: Selection
    worker: str | None
    look: Underway


def replay(visit: Visit) -> Response:
    """The dry run of a replay, and the form that agrees to it."""
    return _counted(visit, "replay")


def discard(visit: Visit) -> Response:
    """The dry run of a discard, and the form that agrees to it."""
    return _counted(visit, "discard")


def _counted(visit: Visit, what: str) -> Response:
    name = visit.word("plan")
    counted = visit.house.plans.show(name)
    if not isinstance(counted, Counted) or counted.what != what:
        selection = chosen(visit)
        demand_words(selection)
        worker = visit.word("worker")
        counted = Counted(what, selection, worker, fresh_look(visit, selection, worker, MOST))
        name = visit.house.plans.keep(counted)
        words: list[tuple[str, str]] = [
            (word, given) for word in (*WORDS, "all") if (given := visit.word(word)) is not None
        ]
        words += [("id", each) for each in selection.ids]
        return visit.to(f"/change/{what}?{urlencode([*words, ('plan', name)])}")
    counted.look.wait(AT_ONCE)
    if counted.look.found is None:
        return waits(visit, counted.look)
    return _page(visit, counted, name)


def _page(visit: Visit, counted: Counted, name: str | None, problem: str | None = None) -> Response:
    """The dry run; where something typed into its form was wrong, with that and what was typed."""
    found = [dossier for _, dossier in counted.look.found.found]
    now = visit.tools.clock.now()
    rows = [
        {**row_of(each), "would": would(each, now, Care()) if counted.what == "replay" else "discard"} for each in found
    ]
    counts: Counter[Any] = Counter((row["would"], row["worker"], row["reason"]) for row in rows)
    return visit.page(
        "change",
        200 if problem is None else 409,
        what=counted.what,
        plan=name,
        number=len(found),
        cut=counted.look.found.cut,
        which=counted.selection.told,
        worker=counted.worker,
        counts=counts.most_common(),
        rows=rows[:ON_A_PAGE],
        most_deaths=MOST_DEATHS,
        archives=str(visit.house.archives),
        problem=problem,
        words=visit.typed(USUAL, problem is not None),
    )


def agree_to_replay(visit: Visit) -> Response:
    """Begin a replay; or show the dry run once more, with what was wrong."""
    return _begun(visit, "replay", _begin_replay)


def agree_to_discard(visit: Visit) -> Response:
    """Begin a discard; or the same."""
    return _begun(visit, "discard", _begin_discard)


def _begun(visit: Visit, what: str, begin: Callable[[Visit], Underway]) -> Response:
    name = visit.word("plan")
    try:
        deed = begin(visit)
    except CommandError as error:
        counted = visit.house.plans.show(name)
        is_there = isinstance(counted, Counted) and counted.what == what and counted.look.found is not None
        if error.status is not Exit.REFUSED or not is_there:
            raise
        return _page(visit, counted, name, str(error))
    forget(visit)
    return visit.to(f"/deeds/{deed.name}")


def _begin_replay(visit: Visit) -> Underway:
    care = Care(
        visit.whole("canary", CANARY, MOST),
        visit.word("no_watch") is None,
        timedelta(seconds=visit.whole("watch_for", round(PATIENCE.total_seconds()), LONGEST_WATCH)),
        visit.whole("rate", round(RATE), FASTEST) or None,
        None if visit.word("force") else MOST_DEATHS,
    )
    counted, why = _agreed(visit, "replay")
    agreed = frozenset(dossier.delivery.message_id for _, dossier in counted.look.found.found)
    selection = dataclasses.replace(counted.selection, only=agreed)
    wanted = Wanted(selection, counted.worker, care, why, visit.word("cancel_redrive") is not None)
    return replaying(visit, wanted, len(agreed))


def _begin_discard(visit: Visit) -> Underway:
    counted, why = _agreed(visit, "discard")
    return discarding(visit, counted.look.found.found, counted.selection.told, why)


def _agreed(visit: Visit, what: str) -> tuple[Counted, str]:
    """What people agree to, and why; the plan can be agreed to once.

    Raises:
        CommandError: the reason or the number is missing or wrong, or the plan is not there any more.
    """
    why = visit.need("why", "The reason, which the audit keeps,")
    counted = visit.house.plans.show(visit.word("plan"))
    if isinstance(counted, Counted) and counted.look.found is not None:
        number = len(counted.look.found.found)
        if visit.word("number") != str(number):
            message = f"Type {number}, the number of letters that are chosen, to agree. Nothing was changed."
            raise CommandError(message, Exit.REFUSED)
    counted = visit.house.plans.take(visit.word("plan"))
    if not isinstance(counted, Counted) or counted.what != what or counted.look.found is None:
        message = "This is another plan than what was shown: count again. Nothing was changed."
        raise CommandError(message, Exit.REFUSED)
    return counted, why


ROUTES = (
    ("/change/replay", replay, "GET"),
    ("/change/discard", discard, "GET"),
    ("/change/replay", agree_to_replay, "POST"),
    ("/change/discard", agree_to_discard, "POST"),
)
