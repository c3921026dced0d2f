"""`python -m tests.console.alone LETTERS`: a console of its own process over a desk of memory, to be killed; prints its address.

A line on its standard input lets its credentials expire.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from ops.console.server import Served
from ops.stack.running import Depth
from tests.console.letters import many
from tests.console.visitor import house_of
from tests.ops.desk import Desk
from tests.ops.letters import bury

if TYPE_CHECKING:
    from ops.stack.deployed import Deployed


def main(letters: int) -> None:
    """Serve until it is killed."""
    desk, is_expired = Desk(), threading.Event()
    bury(desk, "k1")
    many(desk, letters)
    desk.running.depths["payments"] = Depth(0, 0, 0, letters + 1)

    def deployed(name: str) -> Deployed:
        if is_expired.is_set():
            raise ClientError({"Error": {"Code": "ExpiredToken"}}, "DescribeStacks")
        return desk._deployed(name)

    house = house_of(desk, Path("/nonexistent"), deployed=deployed)
    served = Served(house, 0)
    print(served.guard.address, flush=True)  # noqa: T201 - for who has started it

    def expire() -> None:
        sys.stdin.readline()
        is_expired.set()
        house.forget()

    threading.Thread(target=expire, daemon=True).start()
    served.forever()


if __name__ == "__main__":
    main(int(sys.argv[1]))
