"""`make tutorial`: replays the whole of docs/tutorial.md, the local stack included, and tells how long each step took."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from tests.tutorial.page import Run, StaysUp, Write, steps
from tests.tutorial.tree import Tree


def main() -> int:
    """Give 1 if a step did not end as the page says."""
    with tempfile.TemporaryDirectory(prefix="tutorial-") as folder:
        tree = Tree(Path(folder) / "tree")
        try:
            for step in steps():
                begun = time.monotonic()
                told = list(tree.do(step))
                match step:
                    case Run(lines):
                        name = "; ".join(line[:90] for line in lines)
                    case StaysUp(line):
                        name = line
                    case Write(file):
                        name = f"write {file}"
                sys.stdout.write(f"{time.monotonic() - begun:6.1f} s  {name}\n")
                sys.stdout.flush()
                if isinstance(step, Run) and "--local" in step.lines[0]:
                    sys.stdout.write("".join(f"          {line}\n" for text in told for line in text.splitlines()))
        except AssertionError as error:
            sys.stderr.write(f"The tutorial does not hold: {error}\n")
            return 1
        finally:
            tree.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
