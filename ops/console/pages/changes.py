"""Replay and discard of dead letters: counted first, shown as a dry run, agreed to with the number, done behind the pages.

What is done is what the command line does (`ops/letters/audited_replay.py`, `ops/letters/discard.py`).
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from ops.console.looks import AT_ONCE, forget, fresh_look
from ops.console.pages.letters import ON_A_PAGE, WORDS, chosen, waits
from ops.exits import CommandError, Exit
from ops.letters.audited_replay import HINTS, Wanted, audited_replay, summary, would
from ops.letters.discard import Discarded, Thrower, throw
from ops.letters.found import MOST, demand_words, row_of
from ops.letters.replay import CANARY, PATIENCE, RATE, Care
from ops.letters.report import Report
from ops.letters.verdict import MOST_DEATHS, Fate

if TYPE_CHECKING:
    from pathlib import Path

    from werkzeug.wrappers import Response

    from ops.console.deeds import Underway
    from ops.console.visit import Visit
    from ops.letters.selection import Selection

LONGEST_WATCH, FASTEST = 86_400, 10_000


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
    found = [dossier for _, dossier in counted.look.found.found]
    now = visit.tools.clock.now()
    rows = (
        [{**row_of(each), "would": would(each, now, Care())} for each in found]
        if what == "replay"
        else [{**row_of(each), "would": "discard"} for each in found]
    )
    counts: Counter[Any] = Counter((row["would"], row["worker"], row["reason"]) for row in rows)
    return visit.page(
        "change",
        what=what,
        plan=name,
        number=len(found),
        cut=counted.look.found.cut,
        which=counted.selection.told,
        worker=counted.worker,
        counts=counts.most_common(),
        rows=rows[:ON_A_PAGE],
        canary=CANARY,
        rate=f"{RATE:.0f}",
        patience=f"{PATIENCE.total_seconds():.0f}",
        most_deaths=MOST_DEATHS,
        archives=str(visit.house.archives),
    )


def agree_to_replay(visit: Visit) -> Response:
    """Begin a replay."""
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
    tools, told = visit.house.speaking()
    stack, total = visit.stack, len(agreed)

    def work(deed: Underway) -> None:
        shown = _Shown(deed, care)
        deed.note(total=total, why=why, stage="begins")
        report = audited_replay(wanted, tools, stack, tell=shown.tell)
        deed.facts = {**deed.facts, "stage": _ended(report), "counts": summary(report, watches=care.watches)}
        deed.facts["left"] = [
            {**row_of(each.dossier), "why": each.fate.value, "hint": HINTS.get(each.fate, "")}
            for each in report.left[:ON_A_PAGE]
        ]

    deed = visit.house.deeds.begin(f"Replay of {wanted.which}", "replay", told, work)
    forget(visit)
    return visit.to(f"/deeds/{deed.name}")


def agree_to_discard(visit: Visit) -> Response:
    """Begin a discard."""
    counted, why = _agreed(visit, "discard")
    tools, told = visit.house.speaking()
    stack, found = visit.stack, counted.look.found.found
    archive = _archive(visit)

    def work(deed: Underway) -> None:
        kept = {"archive": str(archive)}
        deed.note(total=len(found), why=why, stage="archives and discards", counts=kept)

        def tell(discarded: Discarded) -> None:
            deed.note(done=discarded.fates.total(), counts={**discarded.fields, **kept})

        discarded = throw(tools, stack, found, Thrower(counted.selection.told, why, archive), tell)
        deed.facts = {**deed.facts, "stage": "is over", "counts": {**discarded.fields, **kept}}

    deed = visit.house.deeds.begin(f"Discard of {counted.selection.told}", "discard", told, work)
    forget(visit)
    return visit.to(f"/deeds/{deed.name}")


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


def _archive(visit: Visit) -> Path:
    """A file of its own for what is discarded now.

    Raises:
        CommandError: the folder cannot be made.
    """
    folder = visit.house.archives
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        message = f"The archive's folder cannot be made ({type(error).__name__}): {folder}. Nothing was changed."
        raise CommandError(message) from error
    return folder / f"{visit.house.name}-{visit.tools.clock.now():%Y%m%dT%H%M%S}.jsonl"


class _Shown:
    """Shows how a replay stands, over the reports of all its workers."""

    def __init__(self, deed: Underway, care: Care) -> None:
        self._deed, self._care = deed, care
        self._reports: list[Report] = []

    def tell(self, report: Report) -> None:
        """Show it.

        Raises:
            StoppedError: people have asked it to stop.
        """
        if not self._reports or self._reports[-1] is not report:
            self._reports.append(report)
        care, sent = self._care, report.fates[Fate.REPLAYED]
        first = care.canary and care.watches and sent <= care.canary
        whole = Report()
        for each in self._reports:
            whole.add(each)
        self._deed.note(
            stage=f"watches the first {sent}" if first else "replays the rest",
            counts=summary(whole, watches=care.watches),
            done=whole.fates.total(),
        )


def _ended(report: Report) -> str:
    return "is over" if report.stop is None else f"stopped by itself: {report.stop.value}. The rest is untouched"


ROUTES = (
    ("/change/replay", replay, "GET"),
    ("/change/discard", discard, "GET"),
    ("/change/replay", agree_to_replay, "POST"),
    ("/change/discard", agree_to_discard, "POST"),
)
