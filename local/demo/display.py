"""Shows the demo: a live table on a terminal, plain lines elsewhere. Knows results, not how they come about."""

from __future__ import annotations

import io
import re
import time
from typing import TYPE_CHECKING, Self

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.live import Live
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from local.demo.account import Account
    from local.demo.observation import Observation
    from local.demo.report import Report
    from local.demo.verdict import Result

REFRESH = 4  # a second
WIDTH = 110  # where no terminal tells its own


class Display:
    """What people see while the demo runs; programs read stdout, so with `--json` this is stderr."""

    def __init__(self, *, to_stderr: bool) -> None:
        self.console = Console(stderr=to_stderr, highlight=False)
        if not self.console.is_terminal:
            self.console.width = WIDTH
        self._started = time.monotonic()
        self._live: Live | None = None
        self._shown: dict[str, str] = {}

    def __enter__(self) -> Self:
        """Begin the live table, where the terminal can show one."""
        if self.console.is_terminal:
            self._live = Live(console=self.console, refresh_per_second=REFRESH, transient=True)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def say(self, line: str) -> None:
        """A line that stays."""
        self.console.print(f"[dim]{time.monotonic() - self._started:6.1f} s[/dim] {_plain(line)}", soft_wrap=True)

    def write(self, line: str) -> None:
        """A line to copy from: nothing before it, and never broken."""
        self.console.print(_plain(line), soft_wrap=True)

    def show(self, results: Sequence[Result], observation: Observation, phase: str) -> None:
        """The state of things; plain lines are written for what has changed."""
        if self._live is not None:
            self._live.update(self._table(results, observation, phase))
            return
        for result in results:
            line = _line(result)
            if result.account.sent and line != self._shown.get(result.name):
                self._shown[result.name] = line
                self.say(line)

    def finish(self, report: Report, observation: Observation) -> None:
        """The summary, with what is not as it must be."""
        self._summarise(self.console, report, observation)

    def picture(self, report: Report, observation: Observation) -> str:
        """The summary as SVG, without a font from elsewhere."""
        canvas = Console(
            record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor", highlight=False
        )
        self._summarise(canvas, report, observation)
        return re.sub(r"@font-face\s*\{[^}]*\}", "", canvas.export_svg(title="make demo"))

    def _summarise(self, console: Console, report: Report, observation: Observation) -> None:
        console.print(
            self._table(report.results, observation, "at rest" if observation.is_at_rest else "gave up", is_over=True)
        )
        for result in report.results:
            for name in result.expected:
                if result.expected[name] != result.seen[name]:
                    told = f"{result.name}: {name} is {result.seen[name]!r}, must be {result.expected[name]!r}"
                    console.print(f"[red]{_plain(told)}[/red]", soft_wrap=True)
        if report.strangers:
            console.print(f"[red]{report.strangers} dead letters that nobody sent[/red]")
        if report.stray_charges:
            console.print(f"[red]{report.stray_charges} charges that no order asked for[/red]")
        totals = report.totals
        color, word = ("green", "Every expectation holds") if report.is_ok else ("red", "NOT as expected")
        console.print(
            f"[{color}]{word}[/{color}]: {totals.sent} sent, {totals.completed} completed,"
            f" {totals.duplicates} duplicates, {totals.dead_lettered} dead letters, {totals.charged_twice} charged twice,"
            f" {totals.lost} lost, {report.seconds:.0f} s.",
            soft_wrap=True,
        )

    def _table(
        self, results: Sequence[Result], observation: Observation, phase: str, *, is_over: bool = False
    ) -> Table:
        table = Table(
            box=SIMPLE_HEAD,
            caption=f"{phase} - waiting {observation.waiting}, in flight {observation.in_flight},"
            f" dead letters {observation.dead}, {time.monotonic() - self._started:.0f} s",
        )
        table.add_column("situation", no_wrap=True)
        for column in ("sent", "order", "charges", "again"):
            table.add_column(column, justify="right")
        table.add_column("jobs, or why dead-lettered")
        table.add_column("")
        for result in results:
            seen, account = result.seen, result.account
            cells = (account.sent, seen.get("order") or "-", seen.get("charges", "-"), account.duplicates)
            table.add_row(
                result.name, *(str(cell) for cell in cells), _ended(account) or "-", _mark(result, is_over=is_over)
            )
        return table


def _mark(result: Result, *, is_over: bool) -> str:
    if result.is_as_expected:
        return "[green]ok[/green]"
    if is_over:
        return "[red]WRONG[/red]"
    return "[dim]...[/dim]" if result.account.sent else "[dim]not yet[/dim]"


def _line(result: Result) -> str:
    states = _ended(result.account) or "sent"
    order = f", order {result.seen['order']}" if "order" in result.seen else ""
    return f"{result.name}: {states}{order}{' - ok' if result.is_as_expected else ''}"


def _ended(account: Account) -> str:
    """Why its messages died, or how its jobs stand."""
    reasons = [str(letter.reason) for letter in account.dead_letters]
    return ", ".join(
        reasons or [f"{job.status} ({job.attempts})" if job.attempts > 1 else job.status for job in account.jobs]
    )


def _plain(text: str) -> str:
    """Text in which brackets are no markup."""
    return text.replace("[", r"\[")
