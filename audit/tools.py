"""The tools themselves: an environment of their own for those in Python, a folder of npm packages for cdk-nag.

Both are made on first use, from the committed locks. When a tool runs, it reaches no network.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tarfile
from importlib.metadata import distribution
from pathlib import Path
from typing import TYPE_CHECKING

from infra.packaging.built import BUILD, once
from infra.stage.settings import ROOT
from local.stack.standin import sync
from shared.errors import TahanError

if TYPE_CHECKING:
    from collections.abc import Sequence

PROJECT = ROOT / "audit" / "tools"
BIN = PROJECT / ".venv" / "bin"
# The npm packages travel inside the wheels, so cdk-nag reads templates with the CDK that wrote them.
WHEELS = (
    "aws-cdk-asset-awscli-v1",
    "aws-cdk-asset-node-proxy-agent-v6",
    "aws-cdk-cloud-assembly-schema",
    "aws-cdk-lib",
    "cdk-nag",
    "constructs",
)
# Nobody listens there: whatever would phone home fails at once.
NOWHERE = "http://127.0.0.1:9"
OFFLINE = {
    **{name: NOWHERE for lower in ("http_proxy", "https_proxy", "all_proxy") for name in (lower, lower.upper())},
    **dict.fromkeys(("no_proxy", "NO_PROXY"), ""),
}


class GateError(TahanError):
    """A gate could not look: that is no green."""


def make_environment() -> None:
    """Bring the tools in Python up to date with their lock.

    Raises:
        GateError: uv could not.
    """
    command, environ = sync(PROJECT)
    ran = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    if ran.returncode:
        raise GateError(f"the environment of the audit's tools cannot be made; repair what it says.\n{ran.stderr}")


def node_modules() -> Path:
    """The folder of the npm packages that cdk-nag runs on, unpacked once for their versions."""
    archives = [_archive(name) for name in WHEELS]
    digest = hashlib.sha256("\0".join(path.name for path in archives).encode()).hexdigest()[:16]

    def unpack(folder: Path) -> None:
        for path in archives:
            scratch = folder / "unpacked"
            with tarfile.open(path) as archive:
                archive.extractall(scratch, filter="data")
            package = scratch / "package"
            name = json.loads((package / "package.json").read_text(encoding="utf-8"))["name"]
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            package.rename(folder / name)
            shutil.rmtree(scratch)

    return once(BUILD / "node" / digest / "node_modules", unpack)


def run(
    command: Sequence[str], *, accepted: frozenset[int], environ: dict[str, str] | None = None, said: str = ""
) -> str:
    """What a tool wrote to its standard output, run without any network.

    Args:
        command: the program and its arguments.
        accepted: exit statuses of a tool that has looked.
        environ: what it is told besides.
        said: its standard input.

    Raises:
        GateError: it did not look.
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "PYTHON"))}
    ran = subprocess.run(  # noqa: S603 - ours
        command,
        cwd=ROOT,
        env={**inherited, **OFFLINE, **(environ or {})},
        capture_output=True,
        text=True,
        check=False,
        input=said,
    )
    if ran.returncode not in accepted:
        name = Path(command[0]).name
        raise GateError(
            f"{name} ended with {ran.returncode} and has judged nothing.\n{ran.stdout[-500:]}{ran.stderr[-2000:]}"
        )
    return ran.stdout


def _archive(wheel: str) -> Path:
    found = [file for file in distribution(wheel).files or () if file.name.endswith(".jsii.tgz")]
    if len(found) != 1:
        raise GateError(f"the wheel of {wheel} holds {len(found)} npm packages, not one: see audit/tools.py.")
    return Path(str(distribution(wheel).locate_file(found[0])))
