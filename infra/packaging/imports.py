"""Which modules of `functions` an entry module needs, read from its import statements without importing it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from shared.errors import DeclarationError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FOLLOWED = "functions"
REGISTRY = "functions.registry"
HANDLER = "handler"
NEVER_PACKAGED = frozenset({"infra", "local", "ops", "audit", "watch", "reference", "tests", "benchmarks"})


def sources_of(entry: str, root: Path) -> list[Path]:
    """The files of `functions` that `entry` imports, itself included, relative to `root` and sorted.

    Raises:
        DeclarationError: the entry is missing or has no handler, or something is imported that never gets into a
            function.
    """
    found: dict[str, Path] = {}
    open_modules = [entry]
    while open_modules:
        name = open_modules.pop()
        if name in found:
            continue
        path = _file_of(name, root)
        if path is None:
            message = f"{name} has no file below {FOLLOWED}/: write it, or name the worker after its module."
            raise DeclarationError(message)
        found[name] = path
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if name == entry and not any(map(_binds_handler, tree.body)):
            message = f"{name} has no `{HANDLER}` for Lambda to call: write one, or name the worker after its module."
            raise DeclarationError(message)
        for imported, optional in imports_of(tree, package):
            _refuse(name, imported)
            if imported.partition(".")[0] == FOLLOWED and (not optional or _file_of(imported, root)):
                open_modules.append(imported)
                open_modules += [imported[:i] for i, letter in enumerate(imported) if letter == "."]
    found[FOLLOWED] = root / FOLLOWED / "__init__.py"
    return sorted(path.relative_to(root) for path in found.values())


def _file_of(module: str, root: Path) -> Path | None:
    base = root.joinpath(*module.split("."))
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if path.is_file():
            return path
    return None


def _binds_handler(node: ast.stmt) -> bool:
    match node:
        case ast.FunctionDef(name=name):
            return name == HANDLER
        case ast.Assign(targets=targets):
            return any(isinstance(target, ast.Name) and target.id == HANDLER for target in targets)
        case ast.AnnAssign(target=ast.Name(id=name)):
            return name == HANDLER
        case _:
            return False


def imports_of(tree: ast.AST, package: str) -> Iterator[tuple[str, bool]]:
    """Every imported name, and whether it may be an attribute rather than a module."""
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.Import():
                yield from ((alias.name, False) for alias in node.names)
            case ast.ImportFrom():
                parts = package.split(".")
                parts = parts[: len(parts) - node.level + 1] if node.level else []
                base = ".".join([*parts, *([node.module] if node.module else [])])
                yield base, False
                yield from ((f"{base}.{alias.name}", True) for alias in node.names)
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                yield from (pair for orelse in node.orelse for pair in imports_of(orelse, package))
            case _:
                yield from imports_of(node, package)


def _refuse(module: str, imported: str) -> None:
    if imported == REGISTRY:
        message = f"{module} imports {REGISTRY}, which imports every worker: import the one job or worker it needs."
        raise DeclarationError(message)
    if imported.partition(".")[0] in NEVER_PACKAGED:
        message = f"{module} imports {imported}, which is never part of a function: move what it needs to shared/."
        raise DeclarationError(message)
