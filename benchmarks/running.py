"""Runs measures: their servers and their process, each a child of this one, with the environments and cores they need."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.bench import QUICK, SEED, VALKEY_PORT
from benchmarks.declared import Sample, Store
from benchmarks.judged import Found
from local.processes.child import Program
from local.processes.environment import child_environment
from local.processes.ports import free_port, listens
from local.stack.standin import sync
from local.stack.valkey import Valkey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.declared import Measure
    from local.processes.children import Children

ROOT = Path(__file__).resolve().parents[1]
PEERS = ROOT / "benchmarks" / "peers"
PATIENCE = timedelta(minutes=9)
SYNC_PATIENCE = timedelta(minutes=5)
SERVERS = {Store.MOTO: "tests.moto_server", Store.STUB: "benchmarks.stub"}


@dataclass
class Runner:
    """Runs one measure after another.

    Attributes:
        folder: for logs and whatever else the children write.
        seed: of the order of the rounds.
    """

    children: Children
    folder: Path
    quick: bool
    seed: int
    _python: Path | None = field(default=None, init=False)

    def run(self, measure: Measure, progress: Callable[[float], None]) -> dict[str, Found]:
        """Run a measure to its end.

        Raises:
            ProcessError: it failed, or one of its servers.
        """
        folder = self.folder / measure.name
        folder.mkdir(parents=True, exist_ok=True)
        # What packages assets needs this user's own uv; whatever meets AWS's client gets nothing of its settings.
        base = dict(os.environ) if measure.own_environment else child_environment(os.environ, folder)
        environ = {**base, QUICK: str(int(self.quick)), SEED: str(self.seed)}
        servers = list(self._serve(measure, folder, environ))
        python = Path(sys.executable) if measure.own_environment else self._peers_python()
        command = _on_core(1 if measure.pinned else None, str(python), "-m", "benchmarks.child", measure.name)
        program = Program(f"measure {measure.name}", command, environ, folder / "measure.log", ROOT)
        found: dict[str, Found] = {}

        def heard(line: str) -> None:
            told = _read(line)
            progress(told.get("done", 0.0))
            for name, fields in told.get("samples", {}).items():
                found[name] = Found.of(Sample(tuple(fields["ours"]), tuple(fields["peer"]), fields["more"]))

        try:
            self.children.run(program, PATIENCE, heard)
        finally:
            for stop in servers:
                stop()
        return found

    def _serve(self, measure: Measure, folder: Path, environ: dict[str, str]) -> Iterator[Callable[[], object]]:
        """Start what the measure needs, tell its environment where that is, and give what stops it."""
        if Store.VALKEY in measure.stores:
            valkey = Valkey(self.children, folder / "valkey")
            valkey.start()
            environ[VALKEY_PORT] = str(valkey.port)
            yield valkey.stop
        for store in sorted(measure.stores & SERVERS.keys()):
            port = free_port()
            command = _on_core(1 if measure.pinned else None, sys.executable, "-m", SERVERS[store], str(port))
            name = "AWS_ENDPOINT_URL_DYNAMODB" if store is Store.STUB else "AWS_ENDPOINT_URL"
            own = child_environment(os.environ, folder)
            child = self.children.start(Program(store.value, command, own, folder / f"{store.name.lower()}.log", ROOT))
            child.wait_until(lambda port=port: listens(port), timedelta(seconds=30))  # type: ignore[misc]
            environ[name] = f"http://127.0.0.1:{port}"
            yield child.stop

    def _peers_python(self) -> Path:
        """The interpreter of the peers' environment, which is brought up to date with its lock."""
        if self._python is None:
            command, environ = sync(PEERS)
            program = Program("uv sync for the peers", command, environ, self.folder / "uv.log", PEERS)
            self.children.run(program, SYNC_PATIENCE, lambda _: None)
            self._python = PEERS / ".venv" / "bin" / "python"
        return self._python


def _on_core(core: int | None, *command: str) -> tuple[str, ...]:
    """The command, kept to a core where this system can do that and has as many."""
    if core is None or not hasattr(os, "sched_getaffinity"):
        return command
    cores = sorted(os.sched_getaffinity(0))
    if core >= len(cores):
        return command
    return ("taskset", "-c", str(cores[core]), *command)


def _read(line: str) -> dict[str, Any]:
    """A line of the child; what a library prints besides is none."""
    try:
        told = json.loads(line)
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}
