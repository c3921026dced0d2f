"""Builds what is uploaded for a function, without Docker: `shared`, its modules of `functions`, and its dependencies.

The same input gives the same directory name and the same bytes, modes and times.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from typing import TYPE_CHECKING

from infra.packaging.built import BUILD, compile_bytecode, once, rules
from infra.packaging.dependencies import dependencies
from infra.packaging.imports import sources_of
from infra.stage.settings import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from infra.packaging.target import Target


def asset(entry: str, target: Target, *, root: Path = ROOT, build: Path = BUILD) -> Path:
    """The directory of a function whose handler is in module `entry`.

    Raises:
        DeclarationError: there is no handler, or an import or a compiled file does not fit.
    """
    sources = [*sources_of(entry, root), *sorted(p.relative_to(root) for p in (root / "shared").rglob("*.py"))]
    trees = dependencies(target, build=build)
    digest = hashlib.sha256(rules() + trees.name.encode())
    for source in sources:
        digest.update(f"{source.as_posix()}\0".encode() + (root / source).read_bytes() + b"\0")

    def fill(directory: Path) -> None:
        shutil.copytree(trees, directory, copy_function=_link, dirs_exist_ok=True)
        for source in sources:
            (directory / source).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / source, directory / source)
        target.check(directory)
        if target.on_host:
            compile_bytecode(directory, "functions", "shared")

    return once(build / "assets" / f"{entry}-{digest.hexdigest()[:16]}", fill)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)
