"""Directories that are built once for a content: whole or absent, and the same to the byte wherever they are built."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from infra.stage.settings import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable

BUILD = ROOT / "build"
EPOCH = 315_532_800  # 1980-01-01, the first day that a zip file knows
FILE_MODE = 0o644
DIRECTORY_MODE = 0o755
# What decides what an asset holds: another rule is another asset, also for the same sources and the same lock.
RULES = tuple(sorted(Path(__file__).parent.glob("*.py")))


def rules() -> bytes:
    """The digest of the code that builds assets."""
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in RULES)).digest()


def once(directory: Path, fill: Callable[[Path], None]) -> Path:
    """`directory`, filled now unless it is there: under another name first, so that it is whole or absent."""
    if directory.is_dir():
        return directory
    directory.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".", dir=directory.parent))
    try:
        fill(scratch)
        _level(scratch)
        try:
            scratch.rename(directory)
        except OSError:
            if not directory.is_dir():  # else another process was faster, with the same content
                raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return directory


def compile_bytecode(directory: Path, *parts: str) -> None:
    """Compile parts of a directory for this Python; no time of a source gets into its bytecode, and no path of ours."""
    command = (sys.executable, "-P", "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", *parts)
    environ = {**os.environ, "PYTHONHASHSEED": "0"}  # a set's order is that of its hashes
    subprocess.run(command, cwd=directory, env=environ, check=True)  # noqa: S603 - ours


def _level(directory: Path) -> None:
    """Give everything the same times and modes: a zip holds both, and the umask is the machine's affair."""
    for path in [*directory.rglob("*"), directory]:
        path.chmod(DIRECTORY_MODE if path.is_dir() else FILE_MODE)
        os.utime(path, (EPOCH, EPOCH))
