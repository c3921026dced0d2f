"""`python -m audit [--json]`: every gate over every stage that goes to AWS. Status 0: clean; 1: not; 2: a gate could not look."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rich.console import Console

from audit.exceptions import judge, load
from audit.gates import look
from audit.table import Report
from audit.templates import stages, synthesise
from shared.errors import TahanError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

CLEAN, FOUND, NOT_JUDGED = 0, 1, 2


def audit(progress: Callable[[str], object]) -> Report:
    """Synthesise, let every gate look, judge by the exceptions.

    Raises:
        TahanError: a stage cannot be synthesised, or a gate could not look.
    """
    exemptions = load()
    templates = []
    for stage in stages():
        progress(f"synthesising {stage.name} ...")
        templates.append(synthesise(stage))
    findings, seconds = look(templates, progress=progress)
    names = tuple(template.name for template in templates)
    return Report(names, seconds, judge(findings, exemptions, datetime.now(UTC).date()))


def main(arguments: Sequence[str]) -> int:
    """Run it as asked for."""
    parser = argparse.ArgumentParser(prog="python -m audit", description="Every gate over what is deployed.")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout instead of the table")
    as_json = parser.parse_args(arguments).json
    console, told = Console(), Console(stderr=True)
    try:
        with told.status("") as status:
            report = audit(status.update if told.is_terminal else told.print)
    except TahanError as refusal:
        told.print(str(refusal), style="red", markup=False)
        return NOT_JUDGED
    if as_json:
        sys.stdout.write(f"{report.as_json()}\n")
    else:
        report.show(console)
    return CLEAN if report.judgement.is_clean else FOUND


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
