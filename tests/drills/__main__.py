"""`python -m tests.drills [NAME...]`: plays the drills, all of them or those that are named."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from rich.console import Console

from tests.drills.dead_letters import dead_letters
from tests.drills.guides import guides
from tests.drills.outage import outage
from tests.drills.replay_speed import replay_speed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

DRILLS: tuple[Callable[[Console], None], ...] = (outage, dead_letters, guides, replay_speed)


WIDTH = 150  # of a table in a file


def main(names: Sequence[str]) -> int:
    """Play them; give 1 if one failed."""
    out = Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH)
    err = Console(stderr=True, highlight=False)
    chosen = [drill for drill in DRILLS if not names or drill.__name__ in names]
    failed = []
    for number, drill in enumerate(chosen, 1):
        err.print(f"Drill {number} of {len(chosen)}: {drill.__name__} ...")
        begun = time.monotonic()
        try:
            drill(out)
        except AssertionError as error:
            failed.append(drill.__name__)
            err.print(f"{drill.__name__} FAILED: {error}")
        else:
            err.print(f"{drill.__name__} holds, {time.monotonic() - begun:.1f} s")
    return 1 if failed or not chosen else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
