"""`tahan dlq replay`: shows how a careful replay goes on, and how it ended."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from ops.commands.dlq_words import found_in, selection_of
from ops.exits import CommandError, Exit
from ops.explained import explained
from ops.letters.audited_replay import HINTS, Wanted, audited_replay, summary, would
from ops.letters.found import MOST, demand_words, described, row_of
from ops.letters.replay import Care
from ops.letters.report import Report, Stop
from ops.letters.verdict import GONE, MOST_DEATHS, Fate
from ops.tables import show_failures

if TYPE_CHECKING:
    import argparse
    from types import TracebackType

    from ops.tools import Tools

SLOWEST = 0.1  # letters a second: a letter that is taken must be sent while it is hidden


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
    wanted = Wanted(selection, options.worker, care, options.why, options.cancel_aws_redrive)
    with explained(), _Bar(tools) as bar:
        whole = audited_replay(wanted, tools, tools.deployed(options.stack), bar.begin, bar.tell)
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


def _preview(options: argparse.Namespace, tools: Tools, care: Care) -> Exit:
    """Say what a replay would do, letter by letter, as the job records stand now."""
    found, cut = found_in(options, tools, MOST)
    now = tools.clock.now()
    rows = [{**row_of(dossier), "would": would(dossier, now, care)} for _, dossier in found]
    counts = Counter(str(row["would"]) for row in rows)
    if options.json:
        tools.show({"replayed": False, "counts": counts, "letters": rows, "cut": cut}, as_json=True)
    else:
        for fate, count in counts.most_common():
            tools.write(f"{count:6}  {fate}")
    if not rows:
        tools.tell("No letter is chosen.")
    return Exit.DONE


@dataclass(slots=True)
class _Bar:
    """A bar on a terminal, nothing elsewhere; the summary tells the rest."""

    tools: Tools
    progress: Progress | None = None

    def __enter__(self) -> _Bar:  # noqa: PYI034 - private
        return self

    def begin(self, total: int | None) -> None:
        """Show an empty bar, of a length where it is known."""
        if self.tools.err.is_terminal:
            columns = (TextColumn("replayed"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
            self.progress = Progress(*columns, TextColumn("{task.description}"), console=self.tools.err, transient=True)
            self.progress.add_task("", total=total)
            self.progress.start()

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


def _told(report: Report, options: argparse.Namespace, tools: Tools) -> Exit:
    """Show the summary; give how the command ends."""
    fields = summary(report, watches=not options.no_watch)
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
