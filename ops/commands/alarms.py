"""`tahan alarms`: what rings, since when, and which runbook says what to do."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ops.exits import Exit
from ops.explained import explained
from ops.tables import add_row, in_table, table_of, text_of

if TYPE_CHECKING:
    import argparse

    from ops.stack.deployed import Deployed
    from ops.stack.running import Ringing
    from ops.tools import Tools

DESCRIBED = re.compile(
    r"\[(?P<urgency>\w+)\] (?P<sentence>.*) Runbook: docs/runbooks/(?P<runbook>[a-z0-9-]+)\.md", re.DOTALL
)
WORST_FIRST = {"ALARM": 0, "INSUFFICIENT_DATA": 1, "OK": 2}


@dataclass(frozen=True, slots=True)
class Described:
    """An alarm, and what its description says; `urgency` and `runbook` are empty where that says nothing of ours."""

    alarm: Ringing
    urgency: str
    sentence: str
    runbook: str

    @classmethod
    def of(cls, alarm: Ringing) -> Described:
        """Read an alarm's description."""
        found = DESCRIBED.fullmatch(alarm.description)
        if found is None:
            return cls(alarm, "", alarm.description, "")
        return cls(alarm, found["urgency"], found["sentence"], found["runbook"])


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser], everywhere: argparse.ArgumentParser) -> None:
    """Add the command."""
    about = "what rings, and which runbook says what to do"
    parser = commands.add_parser("alarms", help=about, description=about.capitalize(), parents=[everywhere])
    parser.add_argument("--all", action="store_true", dest="everything", help="also those that are silent")
    parser.set_defaults(run=run)


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


def alarms_of(stack: Deployed, tools: Tools) -> list[Described]:
    """The alarms of a stack: first what rings, and of that what is urgent.

    Raises:
        Unavailable: CloudWatch does not answer.
    """
    found = [Described.of(alarm) for alarm in tools.running(stack).alarms()]
    return sorted(
        found, key=lambda each: (WORST_FIRST.get(each.alarm.state, 1), each.urgency != "page", each.alarm.name)
    )


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
