"""Builds what is uploaded for a function, without Docker: `shared`, its modules of `functions`, and its dependencies.

The dependencies come from `uv.lock`, as wheels for the function's platform. boto3 stays out: Lambda's runtime has it,
and so has the stand-in's environment. The same input gives the same directory name and the same bytes.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from infra.binaries import check_binaries
from infra.imports import sources_of
from infra.settings import ROOT
from shared.errors import DeclarationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from infra.settings import Stage

BUILD = ROOT / "build"
PLATFORMS = {"arm64": "aarch64-manylinux_2_28", "x86_64": "x86_64-manylinux_2_28"}
LEFT_OUT = ("boto3",)  # with what only boto3 needs
# importlib.metadata reads these of a distribution; the rest is for installers.
METADATA = frozenset({"METADATA", "entry_points.txt", "top_level.txt"})
EPOCH = 315_532_800  # 1980-01-01, the first day that a zip file knows


@dataclass(frozen=True, slots=True)
class Target:
    """What an asset is built for; `on_host` is this machine and the Python that runs this."""

    architecture: str
    python: str
    on_host: bool = False

    @classmethod
    def of(cls, stage: Stage) -> Target:
        """The target of a stage's functions."""
        return cls(stage.processor, stage.python_version, stage.on_host)


def asset(entry: str, target: Target, *, root: Path = ROOT, build: Path = BUILD) -> Path:
    """The directory of a function whose handler is in module `entry`.

    Raises:
        DeclarationError: an import or a compiled file does not fit.
    """
    sources = [*sources_of(entry, root), *sorted(p.relative_to(root) for p in (root / "shared").rglob("*.py"))]
    trees = dependencies(target, build=build)
    digest = hashlib.sha256(trees.name.encode())
    for source in sources:
        digest.update(f"{source.as_posix()}\0".encode() + (root / source).read_bytes() + b"\0")

    def fill(directory: Path) -> None:
        shutil.copytree(trees, directory, copy_function=_link, dirs_exist_ok=True)
        for source in sources:
            (directory / source).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / source, directory / source)
        check(directory, target)
        _fix_times(directory)

    return _once(build / "assets" / f"{entry}-{digest.hexdigest()[:16]}", fill)


def check(directory: Path, target: Target) -> None:
    """Refuse an asset with a compiled file that `target` cannot load.

    Raises:
        DeclarationError: naming the file.
    """
    check_binaries(
        directory,
        architecture=target.architecture,
        python=target.python,
        linux=not target.on_host or sys.platform == "linux",
    )


def dependencies(target: Target, *, build: Path = BUILD) -> Path:
    """The directory of all run-time dependencies, one for all functions of a target.

    Raises:
        DeclarationError: uv is missing or cannot get a wheel for the target.
    """
    prune = [argument for name in LEFT_OUT for argument in ("--prune", name)]
    requirements = _uv(
        "export",
        "--frozen",
        "--no-dev",
        "--no-default-groups",
        "--no-emit-project",
        "--no-header",
        "--no-annotate",
        *prune,
    )
    digest = hashlib.sha256(f"{target}\0{requirements}".encode()).hexdigest()[:16]

    def fill(directory: Path) -> None:
        with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file:
            file.write(requirements)
            file.flush()
            platform = [] if target.on_host else ["--python-platform", PLATFORMS[target.architecture]]
            _uv(
                *("pip", "install", "--quiet", "--no-deps", "--require-hashes", "--only-binary", ":all:"),
                *("--python", sys.executable, "--python-version", target.python, *platform),
                *("--link-mode", "copy", "--target", str(directory), "--requirement", file.name),
            )
        _prune(directory)
        check(directory, target)
        _fix_times(directory)

    return _once(build / "dependencies" / digest, fill)


def _once(directory: Path, fill: Callable[[Path], None]) -> Path:
    """`directory`, filled now unless it is there: under another name first, so that it is whole or absent."""
    if directory.is_dir():
        return directory
    directory.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".", dir=directory.parent))
    try:
        scratch.chmod(0o755)
        fill(scratch)
        try:
            scratch.rename(directory)
        except OSError:
            if not directory.is_dir():  # else another process was faster, with the same content
                raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return directory


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


def _prune(directory: Path) -> None:
    shutil.rmtree(directory / "bin", ignore_errors=True)
    (directory / ".lock").unlink(missing_ok=True)
    for distribution in directory.glob("*.dist-info"):
        for path in distribution.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name not in METADATA:
                path.unlink()
    for cache in [*directory.rglob("__pycache__")]:
        shutil.rmtree(cache)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)


def _fix_times(directory: Path) -> None:
    paths: Iterable[Path] = [directory, *directory.rglob("*")]
    for path in paths:
        os.utime(path, (EPOCH, EPOCH))
