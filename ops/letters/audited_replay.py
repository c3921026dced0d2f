"""A replay as people ask for it: of one worker's letters or of all workers', told to the audit; for the command line and the console alike.

What is done to one worker's letters stands in `replay`, which this calls and nobody else in `ops`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ops.audit import Change, audited
from ops.exits import CommandError, Exit
from ops.letters.found import desks
from ops.letters.replay import Replay
from ops.letters.report import Report
from ops.letters.verdict import MOST_DEATHS, Fate, Finish, Leave, verdict_on

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from ops.letters.desk import Desk
    from ops.letters.dossier import Dossier
    from ops.letters.replay import Care
    from ops.letters.selection import Selection
    from ops.stack.deployed import Deployed
    from ops.tools import Tools
    from shared.desk.dead_letter_queue import Redrive

HINTS = {
    Fate.ENDED: "discard them: there is nothing to run",
    Fate.TOO_OFTEN: f"died more than {MOST_DEATHS} times: repair the cause, then --force with --why",
    Fate.OLDER: "discard them: a later letter of the job is here, or it runs again",
    Fate.UNDER_WAY: "look again when it has ended",
    Fate.CHANGED: "say the same again",
    Fate.BEHIND: "say the same again",
    Fate.NOT_SENT: "nothing is lost: say the same again",
    Fate.NOT_DELETED: "nothing is doubled: say the same again",
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """A replay that people want.

    Attributes:
        worker: whose letters; None for those of all workers.
        why: for the audit.
        cancels_redrive: whether a move task of AWS's own is stopped first.
    """

    selection: Selection
    worker: str | None
    care: Care
    why: str
    cancels_redrive: bool = False

    @property
    def which(self) -> str:
        """What is chosen, in words, for the audit."""
        worker = f" of {self.worker}" if self.worker else ""
        return f"{self.selection.told}{worker}{', insisted' if self.care.most_deaths is None else ''}"


def audited_replay(
    wanted: Wanted,
    tools: Tools,
    stack: Deployed,
    begins: Callable[[int | None], None] = lambda _: None,
    tell: Callable[[Report], None] = lambda _: None,
) -> Report:
    """Replay, worker by worker, until nothing that is chosen is left or it stops by itself; the audit is told.

    `begins` is called once, before anything is changed, with the number of letters where all are chosen. `tell` is called
    with the report of the worker that is under way whenever something is known.

    Raises:
        CommandError: a redrive of AWS's runs, or the audit cannot be written; nothing was changed.
        Unavailable: a store did not answer; what is done is done.
    """
    with tools.side_by_side() as mapper:
        chosen = desks(wanted.worker, tools, stack, mapper)
        redrives = [(desk, running) for desk in chosen if (running := desk.queue.redrive()) is not None]
        for desk, redrive in redrives:
            _demand_to_cancel(desk, redrive, cancel=wanted.cancels_redrive)
        begins(sum(desk.queue.depth() for desk in chosen) if wanted.selection.everything else None)
        whole = Report()
        change = Change("dlq replay", wanted.which, wanted.why, wanted.selection.ids)
        with audited(tools, stack, change) as ended:
            for desk, redrive in redrives:
                desk.queue.cancel(redrive)
                tools.tell(
                    f"AWS's own redrive of {desk.worker} is stopped; it had moved {redrive.moved} of {redrive.of}."
                )
            for desk in chosen:
                replay = Replay(desk, wanted.selection, wanted.care, tools.caller(), tell)
                try:
                    replay.run()
                finally:  # also where it broke off: what is done is done
                    whole.add(replay.report)
                    ended.counts = {fate.value: count for fate, count in whole.fates.items()}
                    ended.counts["died again"] = whole.deaths
                    ended.ids = [left.dossier.delivery.message_id for left in whole.left]
                if whole.stop is not None:
                    break
    return whole


def _demand_to_cancel(desk: Desk, redrive: Redrive, *, cancel: bool) -> None:
    """Return if people want a redrive of AWS's stopped, and it can be."""
    if cancel and redrive.handle is not None:
        return
    message = (
        f"AWS's own redrive of {desk.worker} is already running, moved {redrive.moved} of {redrive.of}. Wait for it, or"
        " stop it with --cancel-aws-redrive."
    )
    raise CommandError(message, Exit.REFUSED)


def would(dossier: Dossier, now: datetime, care: Care) -> str:
    """What a replay would do about a letter, as its job record stands now."""
    verdict = verdict_on(dossier, now, care.most_deaths)
    return verdict.fate.value if isinstance(verdict, Leave) else "finish" if isinstance(verdict, Finish) else "replay"


def summary(report: Report, *, watches: bool) -> dict[str, object]:
    """How a replay ended, in counts."""
    return {
        "replayed": report.fates[Fate.REPLAYED],
        "finished": report.fates[Fate.FINISHED],
        "ended": {status.value: count for status, count in report.ended.items()},
        "died_again": dict(report.died_again),
        "not_decided": len(report.watched) if watches else None,
        "not_watched": report.unwatched or None,
        "left": {fate.value: count for fate, count in Counter(left.fate for left in report.left).items()},
        "stopped": None if report.stop is None else report.stop.value,
    }
