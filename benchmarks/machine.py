"""On what something was measured: the commit and the machine, as they are kept beside figures."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def commit() -> str:
    """The commit of this tree; a `+` after it says that what is measured was changed since. Empty outside a repository."""
    return _git("rev-parse", "--short", "HEAD") + ("+" if _git("status", "--porcelain", "--", "shared") else "")


def machine() -> dict[str, str | int | None]:
    """This machine."""
    return {"processor": platform.machine(), "cores": os.cpu_count(), "system": platform.system()}


def _git(*words: str) -> str:
    ran = subprocess.run(["git", *words], capture_output=True, text=True, check=False, cwd=ROOT)  # noqa: S603, S607 - ours
    return ran.stdout.strip()
