"""Ends our children when we were killed without a chance to do it ourselves.

`python -m local.processes.reaper` reads the process ids of children from its standard input, one a line. When the other end is
closed, which the kernel does however we die, it kills those that still run, with all their descendants.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from typing import TYPE_CHECKING

import psutil

from local import ROOT
from local.processes.child import family_of

if TYPE_CHECKING:
    from collections.abc import Iterable


class Reaper:
    """Our side; the other one is started with the first child."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def watch(self, pid: int) -> None:
        """Have a child killed if we die before it."""
        if self._process is None:
            command = [sys.executable, "-m", "local.processes.reaper"]
            # A session of its own: neither Ctrl-C nor the end of the terminal reaches it before its work is done.
            self._process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, start_new_session=True)
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):  # somebody ended it: the children end with us all the same
                self._process.stdin.write(f"{pid}\n".encode())
                self._process.stdin.flush()

    def dismiss(self) -> None:
        """Let it go, after all children have ended."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def wait_and_kill(pids: Iterable[str]) -> None:
    """Take note of the children until we have died, then kill what is left of their families."""
    children: dict[int, psutil.Process | None] = {}
    for pid in map(int, pids):
        children[pid] = psutil.Process(pid) if psutil.pid_exists(pid) else None
    for pid, child in children.items():
        if psutil.pid_exists(pid) and not (child is not None and child.is_running()):
            continue  # the number was given to somebody else since
        for process in family_of(pid):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()


if __name__ == "__main__":
    wait_and_kill(sys.stdin)
