"""The run-time dependencies of all functions: the wheels of `uv.lock` for a target, pruned.

boto3 stays out: Lambda's runtime has it, and so has the stand-in's environment.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING

from infra.packaging.built import BUILD, compile_bytecode, once, rules
from infra.packaging.pruning import prune
from infra.stage.settings import ROOT
from shared.errors import DeclarationError

if TYPE_CHECKING:
    from pathlib import Path

    from infra.packaging.target import Target

LEFT_OUT = ("boto3",)  # with what only boto3 needs


def dependencies(target: Target, *, build: Path = BUILD) -> Path:
    """The directory of all run-time dependencies, one for all functions of a target.

    Raises:
        DeclarationError: uv is missing or cannot get a wheel for the target.
    """
    requirements = _uv(
        "export",
        "--frozen",
        "--no-dev",
        "--no-default-groups",
        "--no-emit-project",
        "--no-header",
        "--no-annotate",
        *(argument for name in LEFT_OUT for argument in ("--prune", name)),
    )
    digest = hashlib.sha256(rules() + f"{target}\0{requirements}".encode()).hexdigest()[:16]

    def fill(directory: Path) -> None:
        _install(requirements, target, directory)
        prune(directory)
        target.check(directory)
        if target.on_host:
            compile_bytecode(directory, ".")

    return once(build / "dependencies" / digest, fill)


def _install(requirements: str, target: Target, directory: Path) -> None:
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file:
        file.write(requirements)
        file.flush()
        _uv(
            *("pip", "install", "--quiet", "--no-deps", "--require-hashes", "--only-binary", ":all:"),
            *("--python", sys.executable, "--python-version", target.python, *target.platform),
            *("--link-mode", "copy", "--target", str(directory), "--requirement", file.name),
        )


def _uv(*arguments: str) -> str:
    uv = os.environ.get("UV") or shutil.which("uv") or next(map(str, ROOT.glob(".tools/uv/bin/uv")), None)
    if uv is None:
        message = "uv is not found: run `make` once, which brings it, or put uv on PATH."
        raise DeclarationError(message)
    ran = subprocess.run([uv, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    if ran.returncode:
        message = f"uv {arguments[0]} failed; repair what it says and package again.\n{ran.stderr.strip()}"
        raise DeclarationError(message)
    return ran.stdout
