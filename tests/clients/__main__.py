"""`python -m tests.clients SEEDS CLIENTS [FIRST]`: many runs, told by their seeds."""

from __future__ import annotations

import sys

from tests.clients.books import Audit
from tests.clients.world import ClientWorld
from tests.simulation.history import Violation
from tests.simulation.scheduler import Stuck


def main(seeds: int, clients: int, first: int = 0) -> int:
    """Run them; the exit status is 1 if any found something."""
    failed = 0
    for seed in range(first, first + seeds):
        world = ClientWorld(seed, clients)
        try:
            world.run()
            Audit(world).all()
        except (Violation, Stuck) as error:
            failed += 1
            print(f"seed {seed}: {error}")  # noqa: T201 - the result
    print(f"{seeds - failed} of {seeds} runs kept all promises")  # noqa: T201 - the result
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
