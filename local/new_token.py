"""`python -m local.new_token SUBJECT` prints a token for the stack that `make local` keeps up, good for an hour."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from local.outside.issuer import issuer_at
from local.stack.note import read_note
from shared.clock import SystemClock


def main() -> None:
    """Print it."""
    parser = argparse.ArgumentParser(prog="python -m local.new_token", description="A token for the local front door.")
    parser.add_argument("subject", help="the user whom it is about")
    subject: str = parser.parse_args().subject
    note = read_note()
    if note is None:
        sys.exit("No local stack is up: start one with `make local`, and leave it running.")
    sys.stdout.write(f"{issuer_at(note.issuer, Path(note.key), SystemClock()).token(subject)}\n")


if __name__ == "__main__":
    main()
