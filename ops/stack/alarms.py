"""The alarms of a stack, what each says of itself, and in which order people want to know of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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


def alarms_of(stack: Deployed, tools: Tools) -> list[Described]:
    """The alarms of a stack: first what rings, and of that what is urgent.

    Raises:
        Unavailable: CloudWatch does not answer.
    """
    found = [Described.of(alarm) for alarm in tools.running(stack).alarms()]
    return sorted(
        found, key=lambda each: (WORST_FIRST.get(each.alarm.state, 1), each.urgency != "page", each.alarm.name)
    )
