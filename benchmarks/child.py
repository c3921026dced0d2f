"""Runs one measure in this process: `python -m benchmarks.child NAME`, in the peers' environment, from the project's root.

Lines of JSON go to the parent: the share that is done, and at the end the samples. What the product and its peers print
goes nowhere.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from typing import TextIO

from benchmarks.bench import Bench
from benchmarks.measures import measure_of


def main() -> int:
    """Run the measure whose name is given."""
    parent = os.fdopen(os.dup(1), "w", buffering=1)
    with open(os.devnull, "w") as nowhere:  # noqa: PTH123 - a device
        os.dup2(nowhere.fileno(), 1)
    found = measure_of(sys.argv[1]).run(Bench.here(lambda share: _tell(parent, {"done": share})))
    _tell(parent, {"samples": {name: dataclasses.asdict(sample) for name, sample in found.items()}})
    return 0


def _tell(parent: TextIO, line: dict[str, object]) -> None:
    parent.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    sys.exit(main())
