"""The AWS stand-in (ministack) as a child process, from an environment of its own: it pins its own botocore.

Functions deployed into it run as its children, with its interpreter and its environment plus their own.
"""

from __future__ import annotations

import http.client
import os
import shutil
from datetime import timedelta
from typing import TYPE_CHECKING

from local import ROOT
from local.processes.child import Child, ProcessError, Program
from local.processes.environment import ACCOUNT, REGION, child_environment
from local.processes.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from local.processes.children import Children
    from local.stack.valkey import Valkey

PROJECT = ROOT / "local" / "standin"
RECORDER = ROOT / "local" / "recorder"
HEALTH = "/_ministack/health"


class Standin:
    """The running stand-in."""

    def __init__(self, child: Child, port: int) -> None:
        self.child = child
        self.endpoint = f"http://127.0.0.1:{port}"


def start_standin(
    children: Children, folder: Path, valkey: Valkey, progress: Callable[[str], None], recorded: Path | None = None
) -> Standin:
    """Start the stand-in and wait until it answers; the first time, its environment is made.

    Args:
        children: ends it with us.
        folder: all its files: state, extracted functions, log.
        valkey: what it hands out as the managed cache.
        progress: gets a line now and then.
        recorded: a file in which each AWS call of a function is written down.

    Raises:
        ProcessError: it does not start.
    """
    folder.mkdir(parents=True, exist_ok=True)
    python = _python(children, folder, progress)
    port = free_port()
    environ = {
        **child_environment(os.environ, folder),
        "BIND_HOST": "127.0.0.1",
        "MINISTACK_HOST": "127.0.0.1",  # in queue URLs; "localhost" may mean ::1 first, where it does not listen
        "MINISTACK_ACCOUNT_ID": ACCOUNT,
        "MINISTACK_REGION": REGION,
        "GATEWAY_PORT": str(port),
        "SFTP_ENABLED": "0",
        "IOT_MTLS_ENABLED": "0",
        "LAMBDA_EXECUTOR": "local",
        "DOCKER_HOST": f"unix://{folder / 'no-docker.sock'}",
        "STATE_DIR": str(folder / "state"),
        "S3_DATA_DIR": str(folder / "s3"),
        "REDIS_HOST": valkey.host,
        "REDIS_PORT": str(valkey.port),
        **({} if recorded is None else {"PYTHONPATH": str(RECORDER), "RECORDED_CALLS": str(recorded)}),
    }
    command = (str(python), "-m", "ministack")
    child = children.start(Program("the AWS stand-in", command, environ, folder / "standin.log", folder))
    child.wait_until(lambda: _is_healthy(port), timedelta(seconds=30))
    return Standin(child, port)


def _python(children: Children, folder: Path, progress: Callable[[str], None]) -> Path:
    """The interpreter of the stand-in's environment, which is brought up to date with its lock."""
    command, environ = sync(PROJECT)
    program = Program("uv sync for the stand-in", command, environ, folder / "uv.log", PROJECT)
    children.run(program, timedelta(minutes=5), progress)
    return PROJECT / ".venv" / "bin" / "python"


def sync(project: Path) -> tuple[tuple[str, ...], dict[str, str]]:
    """What brings the environment of a project within this one up to date with its lock: the command, and its variables.

    Raises:
        ProcessError: uv is not there.
    """
    elsewhere = {"VIRTUAL_ENV", "UV_PROJECT_ENVIRONMENT"}
    environ = {name: value for name, value in os.environ.items() if name not in elsewhere}
    return (find_uv(), "sync", "--frozen", "--quiet", "--compile-bytecode", "--project", str(project)), environ


def find_uv() -> str:
    """The path of uv.

    Raises:
        ProcessError: it is not there.
    """
    ours = ROOT / ".tools" / "uv" / "bin" / "uv"
    found = str(ours) if ours.exists() else shutil.which("uv")
    if found is None:
        message = "uv was not found: run `make demo`, which brings it along."
        raise ProcessError(message)
    return found


def _is_healthy(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", HEALTH)
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
