"""What was seen when it was last recorded, why the rest is granted all the same, and the page that shows both."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from infra.assembly import synthesise, template_path
from infra.stage.settings import ROOT
from shared.naming import camel
from tests.infra.walk import Walk
from tests.permissions.granted import BY_AWS, granted
from tests.unplayed import UNPLAYED

if TYPE_CHECKING:
    from tests.permissions.granted import Matrix

FILE = Path(__file__).with_name("recorded.json")
PAGE = ROOT / "docs" / "reference" / "permissions.md"
STAGE = "local"  # the stage that is recorded; the others' functions have the same roles
# Granted, and not seen in a run of everything: patterns of function, action and resource, with what it is for and where it is proved.
UNSEEN: dict[tuple[str, str, str], str] = {
    ("*Consumer*", "dynamodb:ConditionCheckItem", "*Jobs"): (
        "a fence counts on while its job is held (tests/faults/test_lost_leases.py)"
    ),
    ("*Consumer*", "dynamodb:ConditionCheckItem", "*Items*"): (
        "what a job has read and not changed must be unchanged when it commits (tests/conformance/test_job_records.py)"
    ),
    ("*Consumer*", "dynamodb:PutItem", "*Items*"): "a job that deletes an item leaves a tombstone (the same)",
    ("*Consumer*", "dynamodb:GetItem", "*ItemsImportRows"): "a job may read the tables that it writes (the same)",
    ("*Consumer*", "dynamodb:GetItem", "*Jobs"): (
        "a record is looked at where a claim is refused (tests/conformance/test_job_records.py)"
    ),
    ("*Consumer*", "dynamodb:PutItem", "*Outbox"): (
        "what waits for longer than SQS can hold it waits in the outbox (tests/functions/test_order_and_time.py)"
    ),
    ("*", "s3:*Object", "*Deposits"): "a text that is too large to travel (tests/faults/test_deposits.py)",
    (
        "*Consumer*",
        "s3:AbortMultipartUpload",
        "*",
    ): "a large file of which a part failed (tests/conformance/test_files.py)",
    ("*Consumer*", "sqs:SendMessage", "*DeadLetters"): "a job that died (tests/faults/test_lambda.py)",
    ("*Consumer*", "sqs:ChangeMessageVisibility", "*Source"): "a job that waits for its next attempt (the same)",
    ("FrontDoor*", "dynamodb:*", "*"): "a list, or a read that the demo does not make (tests/functions/test_reads.py)",
    ("*", "lambda:UpdateEventSourceMapping", "*Mapping"): (
        "a queue whose dependency is down is braked (tests/functions/test_lookout.py)"
    ),
    ("Lookout*", "dynamodb:*", "*Jobs"): "the brakes (the same)",
    ("OutboxRelay*", "dynamodb:*", "*"): (
        "a message in a lane, and one that SQS refuses for good (tests/functions/test_outbox_relay.py)"
    ),
    ("OutboxRelay*", "sqs:SendMessage", "*Source"): "each worker may be sent to (tests/functions/test_outbox_relay.py)",
    ("*", "sqs:SendMessage", "*GivenUp"): "the mapping sends there what it gives up, in the function's name",
    ("OutboxSweeper*", "dynamodb:*", "*"): (
        "lost messages, brakes, recurring jobs (tests/functions/test_outbox_sweeper.py, test_rounds.py)"
    ),
    (
        "OutboxSweeper*",
        "sqs:SendMessage",
        "*Source",
    ): "each worker may be sent to (tests/functions/test_outbox_sweeper.py)",
    **{
        (
            f"Worker{camel(worker)}Consumer*",
            "*",
            "*",
        ): "not recorded yet; its own tests run as its role (tests/stack.py)"
        for worker in sorted(UNPLAYED)
    },
}

HEAD = """# What each function may do

One role a function, each action on named resources (`infra/grants.py`). The calls of all functions were recorded while the demo, the
smoke test and an import ran on the stand-in (`python -m tests.permissions` records anew): every call is granted, and what is granted
and was not seen has its reason below. A test holds this page, the recording and the template together.

"""


def recorded() -> Matrix:
    """What was seen."""
    known: Matrix = json.loads(FILE.read_text(encoding="utf-8"))
    return known


def write_recorded(matrix: Matrix) -> None:
    """Keep what was seen."""
    FILE.write_text(f"{json.dumps(matrix, indent=1)}\n", encoding="utf-8")


def local_template() -> Walk:
    """The template whose functions are recorded."""
    return Walk(STAGE, json.loads(template_path(synthesise(STAGE), STAGE).read_text(encoding="utf-8")))


def reason(function: str, action: str, resource: str) -> tuple[str, str, str] | None:
    """The first pattern of the list that has a reason for something that was not seen."""
    for patterns in UNSEEN:
        if all(
            fnmatchcase(name, pattern) for name, pattern in zip((function, action, resource), patterns, strict=True)
        ):
            return patterns
    return None


def page(allowed: Matrix, seen: Matrix) -> str:
    """The page."""
    lines = [HEAD]
    for function, actions in allowed.items():
        lines += [f"## {function}", "", "| action | resource | |", "|---|---|---|"]
        for action, resources in actions.items():
            for resource in resources:
                was_seen = resource in seen.get(function, {}).get(action, ())
                because = reason(function, action, resource)
                why = "seen" if was_seen else "NO REASON" if because is None else UNSEEN[because]
                lines.append(f"| `{action}` | {resource} | {why} |")
        lines.append("")
    lines += ["## What AWS does in a function's name", "", "| action | why |", "|---|---|"]
    lines += [f"| `{action}{'*' if action.endswith(':') else ''}` | {reason} |" for action, reason in BY_AWS.items()]
    return "\n".join(lines) + "\n"


def write_page() -> None:
    """Write the page."""
    PAGE.write_text(page(granted(local_template()), recorded()), encoding="utf-8")
