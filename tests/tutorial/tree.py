"""A copy of the tree, in which commands are run as a new user would."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infra.stage.settings import ROOT
from tests.tutorial.page import Run, StaysUp, Write

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.tutorial.page import Step

LEFT_OUT = (".git", ".venv", ".tools", "node_modules", "build", "__pycache__", ".*_cache", ".hypothesis")
SHARED = (".venv", ".tools", "node_modules", "local/standin/.venv")  # what is installed, and the same for every copy
NOTE = Path("build") / "local-stack.json"
PATIENCE = 420.0


class Tree:
    """One copy; what stays up in it ends with it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*LEFT_OUT))
        for name in SHARED:
            if (ROOT / name).exists():
                (folder / name).symlink_to(ROOT / name)
        self.up: list[subprocess.Popen[bytes]] = []

    def run(self, *words: str, ends: int = 0) -> str:
        """Run a program; give what it wrote.

        Raises:
            AssertionError: it ended otherwise.
        """
        ran = subprocess.run(words, cwd=self.folder, env=_environ(), capture_output=True, text=True, check=False)  # noqa: S603 - ours
        assert ran.returncode == ends, (
            f"{' '.join(words)}: {ran.returncode}\n{ran.stdout[-6000:]}\n{ran.stderr[-3000:]}"
        )
        return ran.stdout + ran.stderr

    def program(self, name: str) -> str:
        """A program of the locked environment."""
        return str(Path(sys.executable).with_name(name))

    def do(self, step: Step) -> Iterable[str]:
        """Do one step of the tutorial; give what its commands told, a text for each.

        Raises:
            AssertionError: a command ended otherwise than the page says.
        """
        match step:
            case Run(lines, ends):
                for line in lines:
                    yield self.run("bash", "-euo", "pipefail", "-c", line, ends=ends if line == lines[-1] else 0)
            case Write(file, text, adds):
                path = self.folder / file
                before = f"{path.read_text(encoding='utf-8')}\n\n" if adds else ""
                path.write_text(before + text.lstrip("\n"), encoding="utf-8")
            case StaysUp(line):
                self._stay(line)

    def _stay(self, line: str) -> None:
        log = self.folder / "stays-up.log"
        with log.open("wb") as out:
            words = ["bash", "-c", f"exec {line}"]
            options: Any = {"cwd": self.folder, "env": _environ(), "stdout": out, "stderr": out}
            self.up.append(subprocess.Popen(words, start_new_session=True, **options))  # noqa: S603 - ours
        deadline = time.monotonic() + PATIENCE
        while not (self.folder / NOTE).exists():
            told = log.read_text(encoding="utf-8", errors="replace")[-3000:]
            assert self.up[-1].poll() is None, f"{line} has ended:\n{told}"
            assert time.monotonic() < deadline, f"{line} is not up after {PATIENCE:.0f} s:\n{told}"
            time.sleep(1.0)

    def close(self) -> None:
        """End what stays up, as Ctrl-C does."""
        for process in self.up:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGINT)  # a terminal tells all of them, and make tells nobody
                process.wait(timeout=180)
        shutil.rmtree(self.folder, ignore_errors=True)


def _environ() -> dict[str, str]:
    """As a new user's terminal has it."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "PYTEST", "TAHAN_"))}
