"""A child process: started in a group of its own, waited for, and ended with all its descendants."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections import deque
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import psutil

from shared.errors import TahanError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

GRACE = timedelta(seconds=3)
TAIL = 30


class ProcessError(TahanError):
    """A child process did not do what it is for: the end of its output says why."""


@dataclass(frozen=True, slots=True)
class Program:
    """What to start: a name for messages, the command, its whole environment, and where its output goes."""

    name: str
    command: tuple[str, ...]
    environ: Mapping[str, str]
    log: Path
    folder: Path | None = None


class Child:
    """A started program and its descendants."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._is_stopped = False
        with program.log.open("ab") as log:
            self.process = subprocess.Popen(
                program.command,
                cwd=program.folder,
                env=dict(program.environ),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def is_running(self) -> bool:
        """Whether it has not ended yet."""
        return self.process.poll() is None

    def wait_until(self, is_ready: Callable[[], bool], patience: timedelta) -> None:
        """Wait until it is ready.

        Raises:
            ProcessError: it ended before, or is not ready within `patience`.
        """
        deadline = time.monotonic() + patience.total_seconds()
        while not is_ready():
            if not self.is_running:
                message = f"ended with status {self.process.returncode} before it was ready"
                raise self.error(message)
            if time.monotonic() > deadline:
                message = f"was not ready within {patience.total_seconds():.0f} s"
                raise self.error(message)
            time.sleep(0.05)

    def error(self, what: str) -> ProcessError:
        """An error about this child that ends with the last lines of its output."""
        with contextlib.suppress(OSError), self.program.log.open(encoding="utf-8", errors="replace") as log:
            tail = "".join(f"\n  | {line.rstrip()}" for line in deque(log, TAIL))
            return ProcessError(f"{self.program.name} {what}. The end of its output:{tail or ' (nothing)'}")
        return ProcessError(f"{self.program.name} {what}.")

    def stop(self, grace: timedelta = GRACE) -> None:
        """End it and all its descendants: asked first, then killed. Again has no effect."""
        if self._is_stopped:
            return
        family = family_of(self.process.pid)
        self._signal(signal.SIGTERM, family)
        stubborn = self._still_alive(family, grace)
        self._signal(signal.SIGKILL, stubborn)
        self._still_alive(stubborn, GRACE)
        self.process.wait()
        self._is_stopped = True

    def _still_alive(self, family: list[psutil.Process], grace: timedelta) -> list[psutil.Process]:
        """Those that have not ended within `grace`; what only waits to be reaped by its parent has ended."""
        deadline = time.monotonic() + grace.total_seconds()
        while True:
            self.process.poll()
            family = [process for process in family if _is_alive(process)]
            if not family or time.monotonic() > deadline:
                return family
            time.sleep(0.02)

    @staticmethod
    def _signal(signum: int, family: list[psutil.Process]) -> None:
        for process in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signum)


def family_of(pid: int) -> list[psutil.Process]:
    """A child, its descendants, and what is left of its group when it has ended itself."""
    found: dict[int, psutil.Process] = {}
    with contextlib.suppress(psutil.NoSuchProcess):
        child = psutil.Process(pid)
        found = {process.pid: process for process in (child, *child.children(recursive=True))}
    for process in psutil.process_iter():
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if os.getpgid(process.pid) == pid:
                found[process.pid] = process
    return list(found.values())


def _is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
