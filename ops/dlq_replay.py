"""`tahan dlq replay`: shows how a careful replay goes on, and how it ended."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from ops.audit import Change, audited
from ops.dlq_look import MOST, described, found_in
from ops.dlq_words import demand_words, desks, row_of, selection_of
from ops.exits import CommandError, Exit
from ops.explained import explained
from ops.replay import Care, Replay
from ops.report import Report, Stop
from ops.tables import show_failures
from ops.verdict import GONE, MOST_DEATHS, Fate, Finish, Leave, verdict_on

if TYPE_CHECKING:
    import argparse
    from types import TracebackType

    from ops.desk import Desk
    from ops.tools import Tools
    from shared.dead_letter_queue import Redrive

SLOWEST = 0.1  # letters a second: a letter that is taken must be sent while it is hidden
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


def run(options: argparse.Namespace, tools: Tools) -> Exit:
    """Replay.

    Raises:
        CommandError: the words are wrong, a redrive of AWS's runs, or a store does not answer.
    """
    selection = selection_of(options)
    demand_words(selection)
    care = _care(options)
    if options.dry_run:
        return _preview(options, tools, care)
    with explained(), tools.side_by_side() as mapper:
        stack = tools.deployed(options.stack)
        chosen = desks(options, tools, stack, mapper)
        redrives = [(desk, running) for desk in chosen if (running := desk.queue.redrive()) is not None]
        for desk, redrive in redrives:
            _demand_to_cancel(desk, redrive, cancel=options.cancel_aws_redrive)
        total = sum(desk.queue.depth() for desk in chosen) if selection.everything else None
        whole = Report()
        change = Change("dlq replay", _which(options), options.why, selection.ids)
        with audited(tools, stack, change) as outcome, _Bar(tools, total) as bar:
            for desk, redrive in redrives:
                desk.queue.cancel(redrive)
                tools.tell(
                    f"AWS's own redrive of {desk.worker} is stopped; it had moved {redrive.moved} of {redrive.of}."
                )
            for desk in chosen:
                replay = Replay(desk, selection, care, tools.caller(), bar.tell)
                try:
                    replay.run()
                finally:  # also where it broke off: what is done is done
                    _add(whole, replay.report)
                    outcome.counts = {fate.value: count for fate, count in whole.fates.items()}
                    outcome.counts["died again"] = whole.deaths
                    outcome.ids = [left.dossier.delivery.message_id for left in whole.left]
                if whole.stop is not None:
                    break
    return _told(whole, options, tools)


def _care(options: argparse.Namespace) -> Care:
    if not options.why and not options.dry_run:
        message = "--why is missing: the audit tells who replayed, and for which reason."
        raise CommandError(message, Exit.REFUSED)
    if options.canary < 0 or (options.rate and not SLOWEST <= options.rate < math.inf):
        message = f"--canary is 0 or more, --rate 0 (no limit) or at least {SLOWEST}."
        raise CommandError(message, Exit.REFUSED)
    return Care(
        options.canary,
        not options.no_watch,
        options.watch_for,
        options.rate or None,
        None if options.force else MOST_DEATHS,
    )


def _which(options: argparse.Namespace) -> str:
    told = selection_of(options).told
    worker = f" of {options.worker}" if options.worker else ""
    return f"{told}{worker}{', insisted' if options.force else ''}"


def _demand_to_cancel(desk: Desk, redrive: Redrive, *, cancel: bool) -> None:
    """Return if people want a redrive of AWS's stopped, and it can be."""
    if cancel and redrive.handle is not None:
        return
    message = (
        f"AWS's own redrive of {desk.worker} is already running, moved {redrive.moved} of {redrive.of}. Wait for it, or"
        " stop it with --cancel-aws-redrive."
    )
    raise CommandError(message, Exit.REFUSED)


def _preview(options: argparse.Namespace, tools: Tools, care: Care) -> Exit:
    """Say what a replay would do, letter by letter, as the job records stand now."""
    found, cut = found_in(options, tools, MOST)
    rows = []
    for _, dossier in found:
        verdict = verdict_on(dossier, tools.clock.now(), care.most_deaths)
        would = (
            verdict.fate.value if isinstance(verdict, Leave) else "finish" if isinstance(verdict, Finish) else "replay"
        )
        rows.append({**row_of(dossier), "would": would})
    counts = Counter(str(row["would"]) for row in rows)
    if options.json:
        tools.show({"replayed": False, "counts": counts, "letters": rows, "cut": cut}, as_json=True)
    else:
        for would, count in counts.most_common():
            tools.write(f"{count:6}  {would}")
    if not rows:
        tools.tell("No letter is chosen.")
    return Exit.DONE


@dataclass(slots=True)
class _Bar:
    """A bar on a terminal, nothing elsewhere; the summary tells the rest."""

    tools: Tools
    total: int | None
    progress: Progress | None = None

    def __enter__(self) -> _Bar:  # noqa: PYI034 - private
        if self.tools.err.is_terminal:
            columns = (TextColumn("replayed"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
            self.progress = Progress(*columns, TextColumn("{task.description}"), console=self.tools.err, transient=True)
            self.progress.add_task("", total=self.total)
            self.progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.progress is not None:
            self.progress.stop()

    def tell(self, report: Report) -> None:
        """Show how it stands."""
        if self.progress is not None:
            about = f"ended {report.ended.total()}, died again {report.deaths}, left {len(report.left)}"
            self.progress.update(self.progress.task_ids[0], completed=report.fates.total(), description=about)


def _add(whole: Report, part: Report) -> None:
    whole.fates.update(part.fates)
    whole.left.extend(part.left)
    whole.watched.update(part.watched)
    whole.unwatched += part.unwatched
    whole.ended.update(part.ended)
    whole.died_again.update(part.died_again)
    whole.stop = whole.stop or part.stop


def _told(report: Report, options: argparse.Namespace, tools: Tools) -> Exit:
    """Show the summary; give how the command ends."""
    fields: dict[str, object] = {
        "replayed": report.fates[Fate.REPLAYED],
        "finished": report.fates[Fate.FINISHED],
        "ended": {status.value: count for status, count in report.ended.items()},
        "died_again": dict(report.died_again),
        "not_decided": len(report.watched) if not options.no_watch else None,
        "not_watched": report.unwatched or None,
        "left": {fate.value: count for fate, count in Counter(left.fate for left in report.left).items()},
        "stopped": None if report.stop is None else report.stop.value,
    }
    if options.json:
        letters = [{**row_of(left.dossier), "left": left.fate.value, "code": left.why} for left in report.left]
        tools.show({**fields, "letters_left": letters}, as_json=True)
    else:
        shown = {
            name: ", ".join(f"{n} {k}" for k, n in v.items()) or None if isinstance(v, dict) else v
            for name, v in fields.items()
        }
        tools.show(shown, as_json=False)
        _hint(report, tools)
    if report.has_failures:
        return Exit.NOT_DONE
    if report.stop is not None:
        return Exit.STOPPED
    refused = report.fates[Fate.TOO_OFTEN] and not any(report.fates[fate] for fate in GONE)
    if refused:
        return Exit.REFUSED
    if report.left:
        return Exit.LEFT
    if report.deaths:
        return Exit.ENDED_BADLY
    return Exit.UNDER_WAY if report.watched and not options.no_watch else Exit.DONE


def _hint(report: Report, tools: Tools) -> None:
    for fate in dict.fromkeys(left.fate for left in report.left):
        tools.tell(f"{fate.value}: {HINTS[fate]}.")
    refused = next((left.dossier for left in report.left if left.fate is Fate.TOO_OFTEN), None)
    if refused is not None:  # its history, since people are to decide about it
        tools.tell(f"{refused.delivery.message_id} died {refused.death} times:")
        show_failures(tools, described(refused, whole=False)["failures"])  # type: ignore[arg-type]
    if report.stop is Stop.DIED_AGAIN:
        tools.tell(
            "The rest is untouched. Look at one of them with `dlq show`, repair the cause, and say the same again."
        )
    elif report.stop in {Stop.UNDECIDED, Stop.NOT_WATCHED}:
        tools.tell("The rest is untouched: say the same again later, give --watch-for, or --no-watch.")
    elif report.stop is Stop.NOT_FOUND:
        tools.tell(
            "There are more letters than can be looked through while they are hidden: choose by --worker, or --all."
        )
    elif not report.fates:
        tools.tell("No letter is chosen. (Letters that somebody else looks at are hidden for a minute.)")
