"""Makes one mutant in a copy of the project and runs the tests that should notice it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.mutants.table import Mutant

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("shared", "functions", "local", "tests", "events", "infra", "ops", "audit", "watch")
FILES = ("pyproject.toml", "cdk.json", "tahan")
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)
SEED = re.compile(r"--seed (\d+) --mode ([\w-]+)")  # in the command that replays it
TESTS_FAILED = 1  # pytest's exit status; any other means that the mutant could not be tried


class NotTriedError(Exception):
    """The mutant's guard was not found once, or its tests did not run: mend the table."""


def mutated(mutant: Mutant) -> str:
    """The file's text without the guard.

    Raises:
        NotTriedError: the guard does not stand there once.
    """
    text = (ROOT / mutant.file).read_text(encoding="utf-8")
    if text.count(mutant.guarded) != 1:
        message = f"{mutant.guard!r}: its text stands {text.count(mutant.guarded)} times in {mutant.file}."
        raise NotTriedError(message)
    return text.replace(mutant.guarded, mutant.without)


def killer(mutant: Mutant) -> str | None:
    """The test that notices the guard's absence, and by which seed if it is a simulated one; None if all pass.

    Raises:
        NotTriedError: they did not run.
    """
    text = mutated(mutant)
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        for name in COPIED:
            ignored = shutil.ignore_patterns("__pycache__", ".venv", "standin")
            shutil.copytree(ROOT / name, Path(folder) / name, ignore=ignored)
        for name in FILES:
            shutil.copy(ROOT / name, folder)
        (Path(folder) / mutant.file).write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *mutant.tests.split()]
        environ = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV"))}
        done = subprocess.run(  # noqa: S603 - our own
            command, cwd=folder, env=environ, capture_output=True, text=True, check=False, timeout=300
        )
    if done.returncode not in {0, TESTS_FAILED}:
        message = f"{mutant.guard!r}: pytest ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        raise NotTriedError(message)
    if done.returncode == 0:
        return None
    failed = FAILED.search(done.stdout)
    name = failed.group(1) if failed else "a test"
    seed = SEED.search(done.stdout)
    return f"{name} (seed {seed.group(1)}, {seed.group(2)})" if seed else name
