"""`make contract`: writes the golden file of each new version of a payload; what is released stays as it is."""

from __future__ import annotations

import sys

from functions.registry import WORKERS
from tests.contracts.golden import broken, read_all, release


def main() -> int:
    """Give 1 if messages in flight would break, having said how and what to do."""
    jobs = [job for worker in WORKERS for job in worker.jobs]
    for name in release(jobs):
        sys.stdout.write(f"written: {name}; look at its messages, and add such as really come\n")
    problems = list(broken(jobs, read_all()))
    for problem in problems:
        sys.stderr.write(f"{problem}\n\n")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
