"""`tahan new worker NAME`: writes a worker that is green at once, in this tree; what it is for is then put in its place.

Nothing is written if anything of it is there already, or if a name is none that AWS, Python and this house take.
"""

from __future__ import annotations

import ast
import builtins
import keyword
import subprocess
import sys
from collections import Counter
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from functions.registry import WORKERS
from ops import ROOT
from ops.exits import CommandError, Exit
from ops.new.files import Names, changed, written
from shared.declaring.job_checks import LONGEST_NAME
from shared.table import NAME

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping, Sequence

    from ops.tools import Tools

LONGEST = 40  # of a worker's name: its dead-letter queue's, with prefix and stage, is SQS's 80 at the most
DEAD_LETTERS = "-dead-letters"
TAKEN = frozenset({"base-model", "unit-of-work"})  # whose classes the module has already
# What is kept of a stack or written from the declarations, and grows with a worker.
WRITERS = (
    ("tests.contracts",),
    ("tests.infra.stateful",),
    ("tests.permissions", "--page"),
    ("benchmarks.cost", "--page"),
    ("reference",),
)


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser], everywhere: argparse.ArgumentParser) -> None:
    """Add the group with its command."""
    about = "write something new into this tree"
    group = commands.add_parser("new", help=about, description=about.capitalize())
    inner = group.add_subparsers(required=True, metavar="THING")
    about = "a worker with its first job, events, tests and the registry's line; no stack is asked"
    parser = inner.add_parser("worker", help=about, description=about.capitalize(), parents=[everywhere])
    parser.add_argument("name", metavar="NAME", help="lower case words joined by '-', like order-lines")
    parser.add_argument(
        "--job", metavar="JOB_TYPE", help="its first job type, like weigh-parcel; by default count-NAME"
    )
    parser.add_argument("--dry-run", action="store_true", help="say what would be written, and write nothing")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace, tools: Tools) -> Exit:
    """Write it.

    Raises:
        CommandError: a name is wrong or taken; or a page could not be written anew.
    """
    names = Names(options.name, options.job or f"count-{options.name}")
    check(names)
    files, lines = written(names), changed(names, lambda file: (ROOT / file).read_text(encoding="utf-8"))
    if not options.dry_run:
        _write({**files, **lines})
        _format([*files, *lines])
        for writer in WRITERS:
            tools.tell(f"{_spelled(writer)} ...")
            _run([sys.executable, "-m", *writer], f"run `{_spelled(writer)}` again when it is repaired")
    told = {"new": sorted(files), "changed": sorted(lines), "then_run": [_spelled(writer) for writer in WRITERS]}
    if options.json:
        fields = {"worker": names.worker, "job_type": names.job, "written": not options.dry_run, **told}
        tools.show(fields, as_json=True)
    else:
        _tell(told, names, tools, is_written=not options.dry_run)
    return Exit.DONE


def check(names: Names) -> None:
    """Return if both names can be used.

    Raises:
        CommandError: with what to do.
    """
    for wrong in chain(_misspelt(names), _taken(names), _doubled(names)):
        message = f"{wrong[0].upper()}{wrong[1:]} Nothing was written."
        raise CommandError(message, Exit.REFUSED)


def _misspelt(names: Names) -> Iterator[str]:
    """What AWS, Python or the house would not take."""
    for what, name in (("worker", names.worker), ("job type", names.job)):
        if not NAME.fullmatch(name):
            yield f"{what} {name!r}: use lower case words joined by '-', like 'order-lines'."
    if len(names.worker) > LONGEST:
        yield f"worker {names.worker!r} has {len(names.worker)} characters, its queues' names take {LONGEST}: shorten it."
    if names.worker.endswith(DEAD_LETTERS):
        yield f"worker {names.worker!r}: its queue would be called like a dead-letter queue: call it otherwise."
    for word in (names.module, names.function):
        if keyword.iskeyword(word) or hasattr(builtins, word):
            yield f"{word!r} is a word of Python's own: choose another name."
    if "-" not in names.job or names.job in TAKEN or len(names.job) > LONGEST_NAME:
        yield f"job type {names.job!r}: call it by what it does, like 'weigh-parcel', in {LONGEST_NAME} characters at most."


def _taken(names: Names) -> Iterator[str]:
    """What is there already."""
    for worker in WORKERS:
        if names.job in worker.job_types.by_name:
            yield f"job type {names.job!r} is declared by worker {worker.name!r}: give --job another one."
        if any(access.table.name == names.worker for access in worker.accesses):
            yield f"a table {names.worker!r} is declared by worker {worker.name!r}: choose another name."
    for file in written(names):
        if (ROOT / file).exists():
            yield (
                f"the file {file} is there already: choose another name, add the job to that worker, or take out what an"
                " earlier run left that broke off."
            )


def _doubled(names: Names) -> Iterator[str]:
    """What the new files would mean two things by."""
    for file, text in written(names).items():
        if file.endswith(".py") and names.function.isidentifier() and names.module.isidentifier():
            bound = Counter(_bound(ast.parse(text)))
            for word in (word for word, times in bound.items() if times > 1):
                yield f"{word!r} would name two things in {file}: choose another name for the worker or its job type."


def _bound(tree: ast.AST) -> Iterator[str]:
    """The names that a module binds."""
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.Import() | ast.ImportFrom():
                yield from (alias.asname or alias.name for alias in node.names)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Assign(targets=targets):
                yield from (target.id for target in targets if isinstance(target, ast.Name))
            case ast.If():
                yield from _bound(node)
            case _:
                continue


def _write(files: dict[str, str]) -> None:
    for name, text in files.items():
        path = ROOT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        whole = path.with_name(f"{path.name}.new")  # whoever dies leaves no half of a file
        whole.write_text(text, encoding="utf-8")
        whole.replace(path)


def _format(files: list[str]) -> None:
    """In the house's shape: a long name breaks lines otherwise."""
    ruff = Path(sys.executable).with_name("ruff")
    sources = [file for file in files if file.endswith(".py")]
    _run([str(ruff), "check", "--quiet", "--select", "I", "--fix-only", *sources], "run `make format`")
    _run([str(ruff), "format", "--quiet", *sources], "run `make format`")


def _run(command: list[str], repair: str) -> None:
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    if ran.returncode:
        message = f"The worker is written, and {' '.join(command[1:3])} failed: {(ran.stderr or ran.stdout).strip()}\nThen {repair}."
        raise CommandError(message)


def _spelled(writer: tuple[str, ...]) -> str:
    return f".venv/bin/python -m {' '.join(writer)}"


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
