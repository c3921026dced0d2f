"""What prod holds, kept in `stateful.json`: a deploy may add to it, and neither removes nor replaces any of it.

`python -m tests.infra.stateful` adds what is new. What goes for good is taken out of the file by hand, with the steps that move
its data in the commit's text.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from infra.assembly import synthesise, template_path
from ops.stack.stateful import harmed, held

FILE = Path(__file__).with_name("stateful.json")


def kept() -> dict[str, dict[str, Any]]:
    """What prod held when it was last written down."""
    known: dict[str, dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))
    return known


def main() -> None:
    """Add what is new."""
    new = held(json.loads(template_path(synthesise("prod"), "prod").read_text(encoding="utf-8")))
    if harms := list(harmed(kept(), new)):
        sys.exit("\n".join(f"{harm.kind} {harm.name} would be {harm.deed}: {harm.why}." for harm in harms))
    FILE.write_text(f"{json.dumps(new, indent=1, sort_keys=True)}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
