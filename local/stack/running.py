"""The whole stack on this machine: Valkey, stand-in, outside systems, issuer, and the deployed assembly between them."""

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
from urllib.parse import urlsplit

from local import ROOT
from local.outside.issuer import issuer_at, new_key
from local.processes.child import Child, Program
from local.processes.children import Children
from local.processes.environment import child_environment, loopback
from local.processes.ports import free_port, listens
from local.stack.adapted import Cache, adapt_assembly
from local.stack.cdk import Deployment
from local.stack.clients import Clients
from local.stack.standin import Standin, start_standin
from local.stack.valkey import Valkey
from shared.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from local.outside.tokens import Issuer

STAGE = "local"
STACK = f"tahan-{STAGE}"
KEY_FILE = "key.pem"


@dataclass(frozen=True, slots=True)
class Outside:
    """A running stand-in of an outside system."""

    child: Child
    endpoint: str

    def ledger(self) -> dict[str, Any]:
        """What it knows, as GET /ledger gives it."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(loopback(f"{self.endpoint}/ledger"), timeout=5) as answer:
            ledger: dict[str, Any] = json.loads(answer.read())
            return ledger


@dataclass(frozen=True, slots=True)
class Deployed:
    """What was deployed, and the way to deploy something else in its place."""

    assembly: Path
    deployment: Deployment
    parameters: dict[str, str]
    cache: Cache

    def put(self, assembly: Path, copy: Path) -> dict[str, str]:
        """Deploy another assembly of the same stage in its place, adapted in `copy`; give the outputs.

        Raises:
            ProcessError: it was refused.
        """
        return self.deployment.deploy(adapt_assembly(assembly, copy, self.cache), self.parameters)

    def take_away(self) -> None:
        """Delete the stack.

        Raises:
            ProcessError: it was refused.
        """
        self.deployment.destroy(self.assembly)


@dataclass(frozen=True, slots=True)
class Stack:
    """A running, deployed stack.

    Attributes:
        publisher: serves the issuer's public key.
        issuer: signs tokens for the front door.
        outputs: of the CloudFormation stack, by name: tables, queues, function names.
        deployed: the assembly, and how it was deployed.
        folder: all files and logs of the children.
    """

    children: Children
    valkey: Valkey
    standin: Standin
    provider: Outside
    inventory: Outside
    notifications: Outside
    publisher: Outside
    issuer: Issuer
    clients: Clients
    outputs: dict[str, str]
    folder: Path
    deployed: Deployed

    @property
    def api(self) -> str:
        """The front door's base URL. The stand-in knows an API by its name in the path, too, which needs no DNS."""
        name = (urlsplit(self.outputs["Api"]).hostname or "").partition(".")[0]
        return f"{self.standin.endpoint}/_aws/execute-api/{name}"

    def check(self) -> None:
        """Tell when a part of it has ended.

        Raises:
            ProcessError: with the end of its output.
        """
        outside = (self.provider, self.inventory, self.notifications, self.publisher)
        self.children.check(self.standin.child, *(part.child for part in outside))


@contextlib.contextmanager
def running_stack(
    progress: Callable[[str], None], logs: Path | None = None, recorded: Path | None = None
) -> Iterator[Stack]:
    """Start and deploy everything; when the block is left, every process and file is gone again, but `logs` if given.

    `recorded` is a file in which each AWS call of a function is written down.

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
        progress("starting Valkey, the AWS stand-in, and the outside systems")
        valkey = Valkey(children, folder / "valkey", keeps=True)  # what was cached before an outage is there after it
        valkey.start()
        provider = _start_outside(children, folder / "provider", "local.outside.payment_provider", "--may-kill")
        inventory = _start_outside(children, folder / "inventory", "local.outside.inventory_system")
        notifications = _start_outside(children, folder / "notifications", "local.outside.notification_service")
        publisher, issuer = _start_issuer(children, folder / "issuer")
        standin = start_standin(children, folder / "standin", valkey, progress, recorded)
        progress("deploying with the CDK command line")
        cache = Cache(valkey.host, valkey.port)
        adapted = adapt_assembly(assembly, folder / "assembly", cache)
        deployment = Deployment(children, standin.endpoint, folder / "cdk", progress)
        parameters = {
            "EndpointPaymentProvider": provider.endpoint,
            "EndpointInventorySystem": inventory.endpoint,
            "EndpointNotificationService": notifications.endpoint,
            "Issuer": issuer.url,
        }
        deployment.bootstrap()
        outputs = deployment.deploy(adapted, parameters)
        clients = Clients.at(standin.endpoint)
        outside = (provider, inventory, notifications, publisher)
        deployed = Deployed(adapted, deployment, parameters, cache)
        yield Stack(children, valkey, standin, *outside, issuer, clients, outputs, folder, deployed)


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


def _start_outside(children: Children, folder: Path, module: str, *options: str) -> Outside:
    """Start the stand-in of an outside system on a port of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    command = (sys.executable, "-m", module, "--port", str(port), *options)
    environ = child_environment(os.environ, folder)
    child = children.start(Program(module, command, environ, folder / f"{folder.name}.log", ROOT))
    child.wait_until(lambda: listens(port), timedelta(seconds=30))
    return Outside(child, f"http://127.0.0.1:{port}")


def _start_issuer(children: Children, folder: Path) -> tuple[Outside, Issuer]:
    """Make a key, publish its public half, and give who signs with the private one."""
    folder.mkdir(parents=True, exist_ok=True)
    key, keys = folder / KEY_FILE, folder / "keys.json"
    new_key(key)
    published = issuer_at("http://127.0.0.1", key, SystemClock()).jwks
    keys.write_text(json.dumps(published), encoding="utf-8")
    publisher = _start_outside(children, folder, "local.outside.issuer", "--keys", str(keys))
    return publisher, issuer_at(publisher.endpoint, key, SystemClock())
