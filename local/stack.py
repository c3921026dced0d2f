"""The whole stack on this machine: Valkey, stand-in, payment provider, and the deployed assembly between them."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import tempfile
import urllib.request
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from local.aws import Clients
from local.child import Child, Program
from local.deploy import Deployment
from local.environment import child_environment, loopback
from local.ports import free_port, listens
from local.processes import Children
from local.standin import ROOT, Standin, start_standin
from local.template import Cache, adapt_assembly
from local.valkey import Valkey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

STAGE = "local"


@dataclass(frozen=True, slots=True)
class Provider:
    """The running payment provider stand-in."""

    child: Child
    endpoint: str

    def ledger(self) -> dict[str, Any]:
        """What it knows, as GET /ledger gives it."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(loopback(f"{self.endpoint}/ledger"), timeout=5) as answer:
            ledger: dict[str, Any] = json.loads(answer.read())
            return ledger


@dataclass(frozen=True, slots=True)
class Stack:
    """A running, deployed stack.

    Attributes:
        outputs: of the CloudFormation stack, by name: tables, queues, function names.
        folder: all files and logs of the children.
    """

    children: Children
    valkey: Valkey
    standin: Standin
    provider: Provider
    clients: Clients
    outputs: dict[str, str]
    folder: Path

    def check(self) -> None:
        """Tell when the stand-in or the provider has ended.

        Raises:
            ProcessError: with the end of its output.
        """
        self.children.check(self.standin.child, self.provider.child)


@contextlib.contextmanager
def running_stack(progress: Callable[[str], None], logs: Path | None = None) -> Iterator[Stack]:
    """Start and deploy everything; when the block is left, every process and file is gone again, but `logs` if given.

    Raises:
        ProcessError: a part does not start or deploy.
    """
    with contextlib.ExitStack() as cleanup:
        # Outermost, so that the children have ended when their files go.
        folder = Path(cleanup.enter_context(tempfile.TemporaryDirectory(prefix="tahan-", ignore_cleanup_errors=True)))
        if logs is not None:
            cleanup.callback(_keep_logs, folder, logs)
        children = cleanup.enter_context(Children())
        assembly = _synthesise(children, folder, progress)
        progress("starting Valkey, the AWS stand-in and the payment provider")
        valkey = Valkey(children, folder / "valkey", keeps=True)  # what was cached before an outage is there after it
        valkey.start()
        provider = _start_provider(children, folder / "provider")
        standin = start_standin(children, folder / "standin", valkey, progress)
        progress("deploying with the CDK command line")
        adapted = adapt_assembly(assembly, folder / "assembly", Cache(valkey.host, valkey.port))
        deployment = Deployment(children, standin.endpoint, folder / "cdk", progress)
        outputs = deployment.deploy(adapted, {"EndpointPaymentProvider": provider.endpoint})
        yield Stack(children, valkey, standin, provider, Clients.at(standin.endpoint), outputs, folder)


def _synthesise(children: Children, folder: Path, progress: Callable[[str], None]) -> Path:
    """The assembly of the local stage; made anew only when something in it has changed."""
    log = folder / "synthesis.log"
    command = (sys.executable, "-m", "infra.assembly", STAGE)
    path = ""

    def tell(line: str) -> None:
        nonlocal path
        if path:
            progress(path)
        path = line

    environ = {**os.environ, "PYTHONUNBUFFERED": "1"}
    children.run(Program("synthesis", command, environ, log, ROOT), timedelta(minutes=10), tell)
    return Path(path)  # the last line, after all that is progress


def _keep_logs(folder: Path, logs: Path) -> None:
    logs.mkdir(parents=True, exist_ok=True)
    for log in folder.glob("**/*.log"):
        shutil.copy(log, logs)


def _start_provider(children: Children, folder: Path) -> Provider:
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    command = (sys.executable, "-m", "local.provider", "--port", str(port), "--may-kill")
    environ = child_environment(os.environ, folder)
    child = children.start(Program("the payment provider", command, environ, folder / "provider.log", ROOT))
    child.wait_until(lambda: listens(port), timedelta(seconds=30))
    return Provider(child, f"http://127.0.0.1:{port}")
