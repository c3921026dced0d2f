"""`tahan new worker NAME`: says what a new worker is, and has it written into this tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ops.commands.words import command, group
from ops.exits import Exit
from ops.new.files import Names
from ops.new.worker import WRITERS, planned, spelled, write

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from ops.commands.words import Commands
    from ops.tools import Tools


def add(commands: Commands, everywhere: argparse.ArgumentParser) -> None:
    """Add the group with its command."""
    inner = group(commands, "new", "write something new into this tree", "THING")
    about = "a worker with its first job, events, tests and the registry's line; no stack is asked"
    parser = command(inner, everywhere, "worker", about, run)
    parser.add_argument("name", metavar="NAME", help="lower case words joined by '-', like order-lines")
    parser.add_argument(
        "--job", metavar="JOB_TYPE", help="its first job type, like weigh-parcel; by default count-NAME"
    )
    parser.add_argument("--dry-run", action="store_true", help="say what would be written, and write nothing")


def run(options: argparse.Namespace, tools: Tools) -> Exit:
    """Write it.

    Raises:
        CommandError: a name is wrong or taken; or something could not be written.
    """
    names = Names(options.name, options.job or f"count-{options.name}")
    plan = planned(names)
    if not options.dry_run:
        write(plan, tools.tell)
    then = [spelled(writer) for writer in WRITERS]
    told = {"new": sorted(plan.new), "changed": sorted(plan.changed), "then_run": then}
    if options.json:
        fields = {"worker": names.worker, "job_type": names.job, "written": not options.dry_run, **told}
        tools.show(fields, as_json=True)
    else:
        _tell(told, names, tools, is_written=not options.dry_run)
    return Exit.DONE


def _tell(told: Mapping[str, Sequence[str]], names: Names, tools: Tools, *, is_written: bool) -> None:
    titles = {"new": "new", "changed": "changed", "then_run": "written anew by" if is_written else "then run"}
    for what, title in titles.items():
        for entry in told[what]:
            tools.write(f"{title:17}{entry}")
    if is_written:
        tools.tell(
            f"Try it: .venv/bin/python -m pytest tests/functions/test_{names.module}.py; then put what it is for into"
            f" functions/{names.module}.py (docs/tutorial.md)."
        )
