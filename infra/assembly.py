"""The synthesised cloud assembly of a stage, made once for a content: tests, the local stack and `cdk deploy` share it.

`python -m infra.assembly dev` prints its path, as in `cdk deploy --app "$(python -m infra.assembly dev)"`.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from infra.names import stack_name
from infra.packaging.built import BUILD
from infra.stage.settings import ROOT, load_stage
from shared.errors import DeclarationError, SettingsError, TahanError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

CODE = ("infra", "functions", "shared")
FILES = ("cdk.json", "pyproject.toml", "uv.lock")
KEPT = 3  # assemblies of a stage; older ones are removed
# jsii warns of a Node that it is about to drop; that is the host's affair and hides what went wrong.
QUIET = {
    "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "18,20,22",
    "JSII_SILENCE_WARNING_DEPRECATED_NODE_VERSION": "1",
    "JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION": "1",
}


def synthesise(stage: str, *, progress: Callable[[str], object] = print) -> Path:
    """The assembly directory (`cdk.out`) of a stage; takes a minute or more when something changed.

    Raises:
        SettingsError: there is no Node.js.
        DeclarationError: the app refused, with what it said.
    """
    _need_node()
    parent = BUILD / "assembly"
    parent.mkdir(parents=True, exist_ok=True)
    with (parent / f".{stage}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        while not (directory := parent / f"{stage}-{_content(stage)}").is_dir():
            progress(f"synthesising {stage} ...")
            started = time.monotonic()
            scratch = parent / f".{directory.name}"
            shutil.rmtree(scratch, ignore_errors=True)
            _run(stage, scratch)
            if directory.name != f"{stage}-{_content(stage)}":
                shutil.rmtree(scratch)
                progress("the code changed meanwhile")
                continue
            scratch.rename(directory)
            progress(f"synthesised {stage} in {time.monotonic() - started:.0f} s")
            _forget_old(parent, stage)
        progress(f"assembly of {stage}: {directory.name}")
        return directory


def template_path(assembly: Path, stage: str) -> Path:
    """The template of the stage's stack in its assembly."""
    return assembly / f"{stack_name(load_stage(stage))}.template.json"


def _need_node() -> None:
    node = os.environ.get("JSII_NODE", "node")
    if shutil.which(node) is None:
        message = f"{node} is not found: install Node.js 20 or later and put it on PATH, the CDK runs on it."
        raise SettingsError(message)


def _run(stage: str, directory: Path) -> None:
    environ = {**os.environ, **QUIET, "STAGE": stage, "CDK_OUTDIR": str(directory)}
    command = [sys.executable, "-m", "infra.app"]
    ran = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    if ran.returncode:
        shutil.rmtree(directory, ignore_errors=True)
        message = f"stage {stage!r} cannot be synthesised; repair what it says.\n{ran.stderr.strip()}"
        raise DeclarationError(message)


def _content(stage: str) -> str:
    digest = hashlib.sha256(f"{stage} {platform.machine()} {sys.version_info[:2]}".encode())
    paths = [ROOT / name for name in FILES]
    for package in CODE:
        paths += sorted((ROOT / package).rglob("*.py"))
    for path in paths:
        digest.update(f"{path.relative_to(ROOT).as_posix()}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _forget_old(parent: Path, stage: str) -> None:
    known = sorted(parent.glob(f"{stage}-*"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in known[KEPT:]:
        shutil.rmtree(path, ignore_errors=True)


def main(arguments: Sequence[str]) -> None:
    """Print the path of the assembly of the stage that is asked for, `dev` by default."""
    stage = arguments[0] if arguments else "dev"
    try:
        assembly = synthesise(stage, progress=lambda line: sys.stderr.write(f"{line}\n"))
    except TahanError as refusal:
        sys.exit(str(refusal))
    sys.stdout.write(f"{assembly}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
