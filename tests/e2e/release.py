"""The next release of this code: the same tree with one line changed, synthesised by itself as any release is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from infra.assembly import CODE, FILES
from infra.stage.settings import ROOT

CHANGED = Path("functions") / "canary.py"
BEFORE = "    return Sung(canary=canary, count=count)\n"
MARK = "/next"
AFTER = f'    return Sung(canary=f"{{canary}}{MARK}", count=count)\n'


def next_release(folder: Path) -> Path:
    """Its assembly for the local stage; its probes say by their results that they ran it."""
    tree = folder / "release"
    for package in CODE:
        shutil.copytree(ROOT / package, tree / package, ignore=shutil.ignore_patterns("__pycache__"))
    for file in FILES:
        shutil.copy(ROOT / file, tree / file)
    # What does not change between the two is taken from here: the wheels, and the tool that knows the lock.
    (tree / "build").mkdir()
    (tree / "build" / "dependencies").symlink_to(ROOT / "build" / "dependencies", target_is_directory=True)
    (tree / ".tools").symlink_to(ROOT / ".tools", target_is_directory=True)
    text = (tree / CHANGED).read_text(encoding="utf-8")
    if text.count(BEFORE) != 1:
        message = f"{CHANGED} has not the line that the next release changes: {BEFORE!r}"
        raise AssertionError(message)
    (tree / CHANGED).write_text(text.replace(BEFORE, AFTER), encoding="utf-8")
    command = [sys.executable, "-m", "infra.assembly", "local"]
    ran = subprocess.run(command, cwd=tree, env=os.environ, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    if ran.returncode:
        raise AssertionError(ran.stderr)
    return Path(ran.stdout.splitlines()[-1])
