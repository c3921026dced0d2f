"""A replay and a discard that run on behind the pages, and how each shows how it stands.

What is done is what the command line does (`ops/letters/audited_replay.py`, `ops/letters/discard.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ops.exits import CommandError
from ops.letters.audited_replay import HINTS, audited_replay, summary
from ops.letters.discard import Thrower, throw
from ops.letters.found import row_of
from ops.letters.report import Report
from ops.letters.verdict import Fate

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ops.console.deeds import Underway
    from ops.console.visit import Visit
    from ops.letters.audited_replay import Wanted
    from ops.letters.desk import Desk
    from ops.letters.discard import Discarded
    from ops.letters.dossier import Dossier
    from ops.letters.replay import Care

LEFT_SHOWN = 50


def replaying(visit: Visit, wanted: Wanted, total: int) -> Underway:
    """Begin a replay of so many letters."""
    tools, told = visit.house.speaking()
    stack = visit.stack

    def work(deed: Underway) -> None:
        deed.note(total=total, why=wanted.why, stage="begins")
        report = audited_replay(wanted, tools, stack, tell=_Shown(deed, wanted.care).tell)
        counts = summary(report, watches=wanted.care.watches)
        left = [
            {**row_of(each.dossier), "why": each.fate.value, "hint": HINTS.get(each.fate, "")}
            for each in report.left[:LEFT_SHOWN]
        ]
        deed.facts = {**deed.facts, "stage": _ended(report), "counts": counts, "left": left}

    return visit.house.deeds.begin(f"Replay of {wanted.which}", "replay", told, work)


def discarding(visit: Visit, found: Sequence[tuple[Desk, Dossier]], which: str, why: str) -> Underway:
    """Begin a discard of these letters, which were chosen in these words.

    Raises:
        CommandError: the archive's folder cannot be made.
    """
    tools, told = visit.house.speaking()
    stack, archive = visit.stack, _archive(visit)

    def work(deed: Underway) -> None:
        kept = {"archive": str(archive)}
        deed.note(total=len(found), why=why, stage="archives and discards", counts=kept)

        def tell(discarded: Discarded) -> None:
            deed.note(done=discarded.fates.total(), counts={**discarded.fields, **kept})

        discarded = throw(tools, stack, found, Thrower(which, why, archive), tell)
        deed.facts = {**deed.facts, "stage": "is over", "counts": {**discarded.fields, **kept}}

    return visit.house.deeds.begin(f"Discard of {which}", "discard", told, work)


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
