"""`tahan alarms`: what rings, since when, and which runbook says what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ops.commands.words import command
from ops.exits import Exit
from ops.explained import explained
from ops.stack.alarms import alarms_of
from ops.tables import add_row, in_table, table_of, text_of

if TYPE_CHECKING:
    import argparse

    from ops.commands.words import Commands
    from ops.stack.alarms import Described
    from ops.tools import Tools


def add(commands: Commands, everywhere: argparse.ArgumentParser) -> None:
    """Add the command."""
    about = "what rings, and which runbook says what to do"
    parser = command(commands, everywhere, "alarms", about, run)
    parser.add_argument("--all", action="store_true", dest="everything", help="also those that are silent")


def run(options: argparse.Namespace, tools: Tools) -> Exit:
    """Show the alarms that ring.

    Raises:
        CommandError: CloudWatch cannot be asked.
    """
    with explained():
        every = alarms_of(tools.deployed(options.stack), tools)
    shown = [each for each in every if options.everything or each.alarm.state != "OK"]
    if options.json:
        tools.show({"alarms": [_row(each) for each in shown], "of": len(every)}, as_json=True)
        return Exit.DONE
    table = table_of("state", "urgency", "since", "runbook", "what")
    for each in shown:
        add_row(table, each.alarm.state, each.urgency, in_table(each.alarm.since), each.runbook, each.sentence)
    if shown:
        tools.out.print(table)
    else:
        tools.tell(f"Nothing rings, of {len(every)} alarms.")
    return Exit.DONE


def _row(each: Described) -> dict[str, object]:
    alarm = each.alarm
    return {
        "name": alarm.name,
        "state": alarm.state,
        "urgency": each.urgency or None,
        "since": text_of(alarm.since),
        "what": each.sentence,
        "runbook": each.runbook and f"docs/runbooks/{each.runbook}.md",
        "told": alarm.told,
    }
