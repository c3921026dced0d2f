"""`tahan status`: is work flowing, what waits, what stands still, and which dependencies are down; in one look."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table

from ops.commands.words import command
from ops.exits import Exit
from ops.explained import explained
from ops.stack.standing import look, receives, stands
from ops.tables import duration_of

if TYPE_CHECKING:
    import argparse

    from ops.commands.words import Commands
    from ops.tools import Tools

PAUSE = 5.0


def add(commands: Commands, everywhere: argparse.ArgumentParser) -> None:
    """Add the command."""
    about = "queues, rates, breakers, and what is paused"
    parser = command(commands, everywhere, "status", about, run)
    parser.add_argument("worker", nargs="*", metavar="WORKER", help="these only; by default all of the stack")
    parser.add_argument("--watch", action="store_true", help="look again every five seconds, until Ctrl-C")


def run(options: argparse.Namespace, tools: Tools) -> Exit:
    """Show how the stack stands.

    Raises:
        CommandError: there is no such worker, or AWS cannot be asked.
    """
    with explained():
        stack = tools.deployed(options.stack)
    workers = stack.workers(*options.worker)
    while True:
        with explained():
            seen = look(stack, workers, tools)
        if options.json:
            tools.show(seen, as_json=True)
        else:
            _show(seen, tools)
        if not options.watch:
            return Exit.DONE
        tools.clock.sleep(PAUSE)


def _show(seen: dict[str, Any], tools: Tools) -> None:
    table = Table(box=None, padding=(0, 1, 0, 0))
    for name in ("worker", "waiting", "later", "running", "oldest", "dead", "done", "retried", "postponed", "receives"):
        table.add_column(name, justify="left" if name in {"worker", "receives"} else "right", no_wrap=True)
    for row in seen["workers"]:
        table.add_row(
            row["worker"],
            str(row["waiting"]),
            str(row["delayed"]),
            str(row["in_flight"]),
            f"[bold red]{duration_of(row['oldest_s'])}[/]" if row["is_late"] else duration_of(row["oldest_s"]),
            f"[bold red]{row['dead_letters']}[/]" if row["dead_letters"] else "0",
            *(_count(row[f"{name}_5m"]) for name in ("succeeded", "retried", "postponed")),
            _receives(row),
        )
    tools.out.print(table)
    for name, gate in (seen["gates"] or {}).items():
        tools.write(f"{name}: {stands(gate)}")
    for row in seen["workers"]:
        if row["brake"] is not None:
            brake = row["brake"]
            tools.write(
                f"{row['worker']} is {brake['state']} until {brake['until']} by {brake['by']}: {brake['why']}."
                f" `tahan resume {row['worker']} --why ...` frees it."
            )


def _receives(row: dict[str, Any]) -> str:
    told, colour = receives(row)
    return f"[bold {colour}]{told}[/]" if colour else told


def _count(number: float | None) -> str:
    return "-" if number is None else f"{number:g}"
