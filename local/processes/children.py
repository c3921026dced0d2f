"""Child processes that do not outlive us: all are ended when we end, by an exception, Ctrl-C, SIGTERM or SIGHUP alike.

SIGKILL leaves us no time for it: then the reaper ends them (`reaper.py`), and only files stay behind.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from typing import TYPE_CHECKING, Self

from local.processes.child import GRACE, Child
from local.processes.reaper import Reaper

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import timedelta
    from types import FrameType, TracebackType

    from local.processes.child import Program

ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """Somebody asked us to end; `status` is the exit status by which shells tell so."""

    def __init__(self, signum: int) -> None:
        super().__init__(signal.Signals(signum).name)
        self.status = 128 + signum


class Children:
    """The children of this program, ended in reverse order when the block is left, however that happens."""

    def __init__(self, grace: timedelta = GRACE) -> None:
        self._grace = grace
        self._children: list[Child] = []
        self._reaper = Reaper()
        self._previous: dict[signal.Signals, signal._HANDLER] = {}
        self._held = False
        self._pending: int | None = None

    def __enter__(self) -> Self:
        """Take over the signals that ask us to end."""
        if threading.current_thread() is threading.main_thread():
            for signum in ENDING_SIGNALS:
                self._previous[signum] = signal.signal(signum, self._interrupt)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End all children; a second Ctrl-C does not keep us from it."""
        self._held = True
        for child in reversed(self._children):
            child.stop(self._grace)
        self._reaper.dismiss()
        for signum, handler in self._previous.items():
            signal.signal(signum, handler)

    def start(self, program: Program) -> Child:
        """Start a program that runs until it is stopped, or we end."""
        with self._signals_held():
            child = Child(program)
            self._children.append(child)
            self._reaper.watch(child.process.pid)
        return child

    def run(self, program: Program, patience: timedelta, progress: Callable[[str], None]) -> None:
        """Run a program to its end, giving each line of its output to `progress`.

        Raises:
            ProcessError: it failed, or took longer than `patience`.
        """
        child = self.start(program)
        deadline = time.monotonic() + patience.total_seconds()
        with program.log.open(encoding="utf-8", errors="replace") as output:
            while True:
                was_running = child.is_running
                for line in filter(str.strip, output):
                    progress(line.rstrip())
                if not was_running:
                    break
                if time.monotonic() > deadline:
                    message = f"did not end within {patience.total_seconds():.0f} s"
                    raise child.error(message)
                time.sleep(0.05)
        if child.process.returncode:
            message = f"failed with status {child.process.returncode}"
            raise child.error(message)

    def check(self, *children: Child) -> None:
        """Tell when a child that should run does not.

        Raises:
            ProcessError: with the end of its output.
        """
        for child in children:
            if not child.is_running:
                message = f"ended with status {child.process.returncode}"
                raise child.error(message)

    def _interrupt(self, signum: int, _frame: FrameType | None) -> None:
        if self._held:
            self._pending = signum
        else:
            self._held = True  # once: what follows is the way out
            raise Interrupted(signum)

    @contextlib.contextmanager
    def _signals_held(self) -> Iterator[None]:
        """Hold signals back while a child exists that is not in the list yet."""
        self._held = True
        try:
            yield
        finally:
            self._held = False
            if self._pending is not None:
                self._interrupt(self._pending, None)
