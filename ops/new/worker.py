"""Writes a worker that is green at once, in this tree; what it is for is then put in its place.

Nothing is written if anything of it is there already, or if a name is none that AWS, Python and this house take.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import keyword
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from functions.registry import WORKER_OF, WORKERS
from ops import ROOT
from ops.exits import CommandError, Exit
from ops.new.files import Names, changed, written
from shared.declaring.job_checks import LONGEST_NAME
from shared.table import NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

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


@dataclass(frozen=True, slots=True)
class Plan:
    """Files that are written: those that are new, and those that are there and get the worker's lines; by path, whole."""

    new: Mapping[str, str]
    changed: Mapping[str, str]


def planned(names: Names) -> Plan:
    """What a new worker is; nothing is written.

    Raises:
        CommandError: a name is wrong or taken, or a file is not as this command knows it.
    """
    check(names)
    return Plan(written(names), changed(names, lambda file: (ROOT / file).read_text(encoding="utf-8")))


def write(plan: Plan, tell: Callable[[str], None]) -> None:
    """Write the files, and have what follows from the declarations written anew; `tell` is given what is under way.

    Raises:
        CommandError: something could not be written, or one of the writers failed; it says what there is by now.
    """
    _write(plan)
    _format([*plan.new, *plan.changed])
    for writer in WRITERS:
        tell(f"{spelled(writer)} ...")
        _run([sys.executable, "-m", *writer], f"run `{spelled(writer)}` again when it is repaired")


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
    if names.job in WORKER_OF:
        yield f"job type {names.job!r} is declared by worker {WORKER_OF[names.job].name!r}: give --job another one."
    for worker in WORKERS:
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


def _write(plan: Plan) -> None:
    done: list[str] = []
    for name, text in {**plan.new, **plan.changed}.items():
        path = ROOT / name
        whole = path.with_name(f"{path.name}.new")  # whoever dies leaves no half of a file
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            whole.write_text(text, encoding="utf-8")
            whole.replace(path)
        except OSError as error:
            with contextlib.suppress(OSError):
                whole.unlink(missing_ok=True)
            raise CommandError(_half(plan, name, done, error)) from error
        done.append(name)


def _half(plan: Plan, name: str, done: list[str], error: OSError) -> str:
    """What there is of a worker that could not be written whole, and how it is taken away."""
    new, lines = ([each for each in done if each in part] for part in (plan.new, plan.changed))
    message = f"{name} cannot be written ({type(error).__name__})."
    if not done:
        return f"{message} Nothing was written."
    message += f" Written before it: {', '.join(done)}. To undo that: rm {' '.join(new)}"
    if lines:
        message += f"; and take the worker's lines out of {', '.join(lines)} (`git diff` shows them)"
    return f"{message}. Then say the same again."


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


def spelled(writer: tuple[str, ...]) -> str:
    """A writer as people run it."""
    return f".venv/bin/python -m {' '.join(writer)}"
