"""Tables on a terminal, and what stands in their cells: rows of what others have written, failures, moments."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from rich.table import Table

from ops.tools import LINE_END, plain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from ops.tools import Tools
    from shared.outcome import Failure


def table_of(*columns: str) -> Table:
    """An empty table."""
    table = Table(box=None, pad_edge=False)
    for column in columns:
        justify: Any = "right" if column in {"letters", "tries", "deaths", "attempt"} else "left"
        # What people type again stays whole, however narrow the terminal is.
        table.add_column(column, justify=justify, no_wrap=column in {"id", "signature"}, overflow="fold")
    return table


def add_row(table: Table, *cells: str) -> None:
    """Add a row of what others have written."""
    table.add_row(*(plain(cell.replace("\n", LINE_END)) for cell in cells))


def failure_of(failure: Failure) -> dict[str, object]:
    """A failure as fields."""
    return {
        "at": text_of(failure.at),
        "reason": failure.reason,
        "error": failure.error,
        "signature": failure.signature,
        "dependency": failure.dependency,
    }


def show_failures(tools: Tools, failures: Sequence[Mapping[str, object]]) -> None:
    """The attempts that were spent, as a table."""
    if not failures:
        return
    table = table_of("attempt", "at", "reason", "dependency", "error")
    for number, failure in enumerate(failures, 1):
        add_row(
            table,
            str(number),
            str(failure["at"]),
            str(failure["reason"]),
            str(failure["dependency"] or ""),
            str(failure["error"]),
        )
    tools.out.print(table)


def text_of(moment: datetime | None) -> str | None:
    """A moment as text."""
    return None if moment is None else moment.isoformat(timespec="seconds")


def duration_of(seconds: float | None) -> str:
    """How long something lasts, or a dash where nobody knows."""
    return "-" if seconds is None else str(timedelta(seconds=round(seconds)))


def in_table(moment: datetime | None) -> str:
    """A moment in a table, by UTC; letters are days old at the most."""
    return "" if moment is None else f"{moment:%m-%d %H:%M}"
