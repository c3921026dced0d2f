"""`python -m tests.permissions [--page]`: plays demo, smoke test and an import on a stand-in that writes every call down, and keeps what was seen."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from local.demo.display import Display
from local.demo.play import Run
from local.imports.file import ImportFile
from local.imports.run import ImportRun
from local.stack.running import STACK, running_stack
from tests.e2e.life import Life
from tests.infra.walk import plain
from tests.permissions.calls import needed
from tests.permissions.granted import ordered
from tests.permissions.kept import write_page, write_recorded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from local.stack.clients import Clients
    from tests.permissions.granted import Matrix

ROWS = 3000


def record() -> Matrix:
    """What the functions were seen to do, by the names that their resources have in the template."""
    display = Display(to_stderr=True)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "calls.jsonl"
        with running_stack(display.say, recorded=file) as stack:
            names = logical_names(stack.clients)
            with display:
                Run(stack, display).play()
            Life(stack, display.say).smoke(Path(folder))
            ImportRun(stack, ImportFile(ROWS), lambda _: None, display.say, 1).run()
        calls = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    display.say(f"{len(calls)} calls of {len({call['function'] for call in calls})} functions")
    found: dict[str, dict[str, set[str]]] = {}
    for call in calls:
        for action, resource in needed(call):
            actions = found.setdefault(names[call["function"]], {})
            actions.setdefault(action, set()).add(names[resource])
    return ordered(found)


def logical_names(clients: Clients) -> dict[str, str]:
    """The logical name, without the letters of the CDK, of whatever the stack has made, by its own name."""
    found = {}
    for resource in clients.resources(STACK):
        physical = resource.get("PhysicalResourceId", "")
        found[physical.rpartition("/")[2] or physical] = plain(resource["LogicalResourceId"])
    return found


def main(words: Sequence[str]) -> int:
    """Record, and keep it; or write the page alone, over what is kept."""
    if "--page" not in words:
        write_recorded(record())
    write_page()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
