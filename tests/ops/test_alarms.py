"""`tahan alarms`: what rings, and its runbook."""

from __future__ import annotations

from ops.exits import Exit
from ops.stack.running import Ringing
from shared.errors import Unavailable
from tests.ops.desk import Desk
from tests.world import START

RINGING = [
    Ringing("tahan-dev-a", "OK", "[page] All is well. Runbook: docs/runbooks/retries.md"),
    Ringing("tahan-dev-b", "ALARM", "[warn] It waits. Runbook: docs/runbooks/queue-age.md", START, "1 of 1 over"),
    Ringing("tahan-dev-c", "ALARM", "[page] It is gone. Runbook: docs/runbooks/canary.md", START),
    Ringing("tahan-dev-d", "INSUFFICIENT_DATA", "of somebody else"),
]


def test_what_rings_is_told_the_urgent_first_with_its_runbook() -> None:
    desk = Desk()
    desk.running.ringing = RINGING
    assert desk.run("alarms", "--json") == Exit.DONE
    assert desk.json["of"] == 4
    assert [(each["name"], each["urgency"], each["runbook"]) for each in desk.json["alarms"]] == [
        ("tahan-dev-c", "page", "docs/runbooks/canary.md"),
        ("tahan-dev-b", "warn", "docs/runbooks/queue-age.md"),
        ("tahan-dev-d", None, ""),
    ]
    assert desk.run("alarms", "--all") == Exit.DONE
    assert "All is well." in desk.out


def test_silence_is_told() -> None:
    desk = Desk()
    desk.running.ringing = RINGING[:1]
    assert desk.run("alarms") == Exit.DONE
    assert "Nothing rings, of 1 alarms." in desk.err


def test_alarms_that_cannot_be_asked_for_are_told() -> None:
    desk = Desk()
    desk.running.ringing = Unavailable("cloudwatch gave no answer.", dependency="cloudwatch")
    assert desk.run("alarms") == Exit.NOT_DONE
    assert "cloudwatch gave no answer" in desk.err
