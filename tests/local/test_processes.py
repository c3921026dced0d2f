"""No child outlives us, however we end; SIGKILL included."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from local.processes.child import Child, ProcessError, Program, family_of
from local.processes.children import Children
from local.processes.ports import free_port, listens
from local.processes.reaper import wait_and_kill
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
# A child with a child of its own that ignores being asked to end, as a busy function might.
STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(300)"
)
FAMILY = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {STUBBORN!r}]); time.sleep(300)"
# A program of ours as the demo is: it starts the family, says so, and waits.
OURS = f"""
import os, sys, time
from datetime import timedelta
from pathlib import Path
from local.processes.child import Program
from local.processes.children import Children, Interrupted
try:
    with Children(grace=timedelta(milliseconds=300)) as children:
        child = children.start(Program("family", (sys.executable, "-c", {FAMILY!r}), os.environ, Path(sys.argv[1])))
        child.wait_until(lambda: "up" in Path(sys.argv[1]).read_text(), timedelta(seconds=20))
        print(child.process.pid, flush=True)
        time.sleep(300)
except Interrupted as interrupted:
    sys.exit(interrupted.status)
"""


def program(code: str, log: Path) -> Program:
    return Program("child", (sys.executable, "-c", code), os.environ, log)


def is_alive(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


def end(left: list[psutil.Process]) -> None:
    """Leave nothing behind when a test fails."""
    for process in left:
        process.kill()


def wait_for(log: Path, word: str) -> None:
    until(lambda: word in log.read_text(), 20, repr(word))


def start_ours(log: Path) -> tuple[subprocess.Popen[str], list[psutil.Process]]:
    """Our program, and the family that it has started."""
    ours = subprocess.Popen(  # noqa: S603 - the program above
        [sys.executable, "-c", OURS, str(log)], stdout=subprocess.PIPE, text=True, cwd=ROOT, start_new_session=True
    )
    assert ours.stdout is not None
    child = psutil.Process(int(ours.stdout.readline()))
    ours.stdout.close()
    family = [child, *child.children(recursive=True)]
    assert len(family) == 2
    return ours, family


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_whole_tree_and_tells_by_the_exit_status(signum: signal.Signals, tmp_path: Path) -> None:
    ours, family = start_ours(tmp_path / "log")

    ours.send_signal(signum)
    ours.send_signal(signum)  # an impatient second one must not leave anything behind

    assert ours.wait(timeout=20) == 128 + signum
    assert not any(is_alive(process) for process in family)


def test_sigkill_leaves_nobody_behind(tmp_path: Path) -> None:
    ours, family = start_ours(tmp_path / "log")
    all_of_us = psutil.Process(ours.pid).children(recursive=True)  # the watchdog, too
    assert set(family) <= set(all_of_us)

    ours.kill()  # the children, one of which ignores SIGTERM, hear nothing of it

    assert ours.wait(timeout=20) == -signal.SIGKILL
    psutil.wait_procs(all_of_us, timeout=20)
    left = [process for process in all_of_us if is_alive(process)]
    end(left)
    assert left == []


def test_a_child_that_has_ended_is_nothing_to_the_watchdog() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()

    wait_and_kill([str(ended.pid)])


def test_the_watchdog_kills_what_is_left_of_a_family_whose_head_has_ended(tmp_path: Path) -> None:
    log = tmp_path / "log"
    orphaning = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {STUBBORN!r}])"
    with log.open("wb") as output:
        head = subprocess.Popen([sys.executable, "-c", orphaning], stdout=output, start_new_session=True)  # noqa: S603 - ours
    wait_for(log, "up")
    (orphan,) = [process for process in family_of(head.pid) if process.pid != head.pid]

    def pids() -> Iterator[str]:
        yield str(head.pid)
        head.wait()

    wait_and_kill(pids())

    psutil.wait_procs([orphan], timeout=20)
    left = [orphan] if is_alive(orphan) else []
    end(left)
    assert left == []


def test_an_exception_ends_the_children(tmp_path: Path) -> None:
    started: list[Child] = []

    def fail() -> None:
        with Children() as children:
            started.append(children.start(program("import time; time.sleep(300)", tmp_path / "log")))
            message = "stop"
            raise RuntimeError(message)

    with pytest.raises(RuntimeError, match="stop"):
        fail()

    assert not started[0].is_running


def test_descendants_are_ended_even_when_their_parent_has_ended_before(tmp_path: Path) -> None:
    log = tmp_path / "log"
    orphaning = f"import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', {STUBBORN!r}]).pid, flush=True)"
    with Children() as children:
        child = children.start(program(orphaning, log))
        child.process.wait()
        wait_for(log, "up")
        orphan = psutil.Process(int(log.read_text().split()[0]))
        assert is_alive(orphan)

        child.stop(grace=timedelta(milliseconds=200))

    assert not is_alive(orphan)


def test_a_child_that_ends_before_it_is_ready_is_reported_with_its_output(tmp_path: Path) -> None:
    with Children() as children:
        child = children.start(program("print('no such setting'); raise SystemExit(3)", tmp_path / "log"))

        with pytest.raises(ProcessError, match=r"(?s)child ended with status 3 before it was ready.*no such setting"):
            child.wait_until(lambda: False, timedelta(seconds=20))


def test_a_child_that_is_never_ready_is_reported(tmp_path: Path) -> None:
    with Children() as children:
        child = children.start(program("import time; time.sleep(300)", tmp_path / "log"))

        with pytest.raises(ProcessError, match="was not ready within 0 s"):
            child.wait_until(lambda: False, timedelta(milliseconds=10))


def test_the_output_of_a_program_that_runs_to_its_end_is_handed_on(tmp_path: Path) -> None:
    lines: list[str] = []
    with Children() as children:
        children.run(program("print('one'); print('two')", tmp_path / "log"), timedelta(seconds=20), lines.append)

    assert lines == ["one", "two"]


def test_a_program_that_fails_is_an_error(tmp_path: Path) -> None:
    with Children() as children, pytest.raises(ProcessError, match="failed with status 7"):
        children.run(program("raise SystemExit(7)", tmp_path / "log"), timedelta(seconds=20), lambda _: None)


def test_a_child_that_has_ended_is_noticed(tmp_path: Path) -> None:
    with Children() as children:
        child = children.start(program("", tmp_path / "log"))
        child.process.wait()

        with pytest.raises(ProcessError, match="ended with status 0"):
            children.check(child)


def test_signal_handlers_are_given_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with Children():
        assert signal.getsignal(signal.SIGTERM) is not before

    assert signal.getsignal(signal.SIGTERM) is before


def test_a_free_port_is_not_listened_on() -> None:
    assert not listens(free_port())
