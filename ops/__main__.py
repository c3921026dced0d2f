"""`python -m ops`, which is `./tahan`."""

from __future__ import annotations

import sys

from ops.cli import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
