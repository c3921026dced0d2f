"""Watching a job until it is over: how long is waited between two looks, and where its state is told meanwhile."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, assert_never

from rich.console import Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.text import Text

from ops.exits import Exit
from shared.errors import Unavailable
from shared.intake.operation import OF_JOB, OperationStatus, operation_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from ops.jobs.job_records import Jobs, Seen
    from ops.tools import Tools
    from shared.commit import Progress

PAUSE = timedelta(seconds=2)  # as the front door advises its clients
BAR = 40  # columns
LONGEST_PAUSE = timedelta(seconds=30)  # while the job waits for its time
NOT_BEGUN = "there is no such operation yet: if it was enqueued, its message is on the queue"


@dataclass(frozen=True, slots=True)
class Watch:
    """Looks at a job until it is over or the time is up; one whose message waits on the queue has no record yet."""

    jobs: Jobs
    record: str
    tools: Tools
    patience: timedelta

    def until_over(self, seen: Seen | None) -> Seen | None:
        """The record as it was seen last; None if it never was."""
        with _Line(self.tools) as tell:
            return self._look_on(seen, tell)

    def _look_on(self, last: Seen | None, tell: Callable[[str, float | None], None]) -> Seen | None:
        deadline = self.tools.clock.monotonic() + self.patience.total_seconds()
        while last is None or not _is_over(OF_JOB[last.view.status]):
            tell(NOT_BEGUN if last is None else line_of(last, self.tools.clock.now()), share_of(last))
            left = deadline - self.tools.clock.monotonic()
            if left <= 0:
                break
            self.tools.clock.sleep(min(left, self._pause(last).total_seconds()))
            try:
                last = self.jobs.look(self.record)
            except Unavailable as error:  # it may answer the next time; the patience ends it
                tell(f"not seen: {error}", share_of(last))
        return last

    def _pause(self, seen: Seen | None) -> timedelta:
        before = None if seen is None else seen.view.not_before
        wait = PAUSE if before is None else before - self.tools.clock.now()
        return min(max(wait, PAUSE), LONGEST_PAUSE)


class _Line:
    """Where the state is told while we watch: a live line and a bar on a terminal, elsewhere a line for each change."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._told = ""
        self._spinner = Spinner("dots")
        self._live = Live(self._spinner, console=tools.err, transient=True) if tools.err.is_terminal else None

    def __enter__(self) -> Callable[[str, float | None], None]:
        if self._live is not None:
            self._live.start()
        return self._tell

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def _tell(self, line: str, share: float | None) -> None:
        if self._live is not None:
            self._spinner.update(text=Text(line))
            bar = None if share is None else ProgressBar(total=1.0, completed=share, width=BAR)
            self._live.update(self._spinner if bar is None else Group(self._spinner, bar), refresh=True)
        elif line != self._told:
            self._tools.tell(line)
        self._told = line


def _is_over(status: OperationStatus) -> bool:
    """Whether it stays so until people do something. An unknown outcome is being found out by another job."""
    return exit_of(status, watched=True) in {Exit.DONE, Exit.ENDED_BADLY}


def exit_of(status: OperationStatus, *, watched: bool) -> Exit:
    """How the command ends for a job that stands so."""
    match status:
        case OperationStatus.DONE:
            return Exit.DONE
        case OperationStatus.FAILED | OperationStatus.CANCELLED | OperationStatus.DEAD_LETTERED:
            return Exit.ENDED_BADLY
        case OperationStatus.UNKNOWN:
            return Exit.UNKNOWN
        case OperationStatus.PENDING | OperationStatus.RUNNING | OperationStatus.RETRYING:
            return Exit.UNDER_WAY if watched else Exit.DONE
    assert_never(status)


def share_of(seen: Seen | None) -> float | None:
    """The part of the job that is done, between 0 and 1; None where nobody knows."""
    progress = None if seen is None else seen.view.progress
    if progress is None or not progress.total:
        return None
    return min(progress.done / progress.total, 1.0)


def told(progress: Progress) -> str:
    """How far a job is, in words."""
    of = "" if progress.total is None else f" of {progress.total:,}"
    return f"{progress.done:,}{of}{f' {progress.note}' if progress.note else ''}"


def line_of(seen: Seen, now: datetime) -> str:
    """How it stands, in a line."""
    view = seen.view
    line = f"{view.names.get('job_type', 'job')}: {operation_of(view, now).status}, attempts {view.attempts}"
    if view.progress is not None:
        line += f", {told(view.progress)}"
    if view.not_before is not None and view.not_before > now:
        line += f", not before {view.not_before:%H:%M:%S}"
    if view.last_failure is not None:
        line += f", last failure {view.last_failure.reason}"
    return line
