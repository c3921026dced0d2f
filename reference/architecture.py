"""`docs/architecture.md`: the packages, the modules of each with the first sentence of its docstring, and who may import whom."""

from __future__ import annotations

import ast
import re
import tomllib
from typing import TYPE_CHECKING

from infra.stage.settings import ROOT
from reference.explained import UnexplainedError, in_cell

if TYPE_CHECKING:
    from pathlib import Path

# The packages of the product, from what everything stands on to what stands on everything; a test sees that none is missing.
PACKAGES = ("shared", "functions", "infra", "local", "ops", "watch", "audit", "reference", "benchmarks", "tests")
# Whose modules are not listed one by one: the folders are.
BY_FOLDER = frozenset({"tests", "benchmarks"})

HEAD = """# Architecture

What the packages are, what is in them, and who may import whom. This page is written by `python -m reference` from the docstrings of the modules and the
contracts of `pyproject.toml` (`lint-imports` keeps those), so it says what the code says.

```
 producers --- SQS message -----------------------------+
                                                        v
 clients --> HTTP API --> front door --+           source queue --> consumer (a worker) --+--> DynamoDB: job record, items, outbox
              (JWT, IAM)               |                ^  |                              |      one transaction
                                       v                |  +--> dead-letter queue         +--> Valkey: leases, cache, gates (losable)
                               job record + outbox -----+            |                    +--> outside systems, through their gates
                                       |    relay (stream), sweeper  |
                                       +--> part counter (stream)    +--> the operator's desk: tahan
```

- **One item is the truth about a job**, its [job record](explanation/attempts-are-not-receives.md). Queues hold hints: a message that comes twice or not at all is found out.
- **What is decided is decided in DynamoDB**, by conditions. Valkey spares work ([why](explanation/lease-or-condition.md)).
- **[`shared/execution.py`](../shared/execution.py)** is the file to read first; [the order of its steps](explanation/the-order-of-steps.md) is the guarantee.
- **Everything deployed follows from `WORKERS`** in [`functions/registry.py`](../functions/registry.py).
"""


def page() -> str:
    """The page."""
    return "\n".join([HEAD, _contracts(), *map(_package, PACKAGES)])


def missing() -> list[str]:
    """Packages of the tree that are not in the list."""
    there = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    return sorted(there - set(PACKAGES))


def _contracts() -> str:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    lines = []
    for contract in contracts:
        if contract["type"] == "layers":
            says = " -> ".join(f"`{layer}`" for layer in contract["layers"])
        elif contract["type"] == "forbidden":
            says = f"not {', '.join(f'`{module}`' for module in contract['forbidden_modules'])}"
        else:
            says = ", ".join(f"`{module}`" for module in contract["modules"])
        lines.append(f"| {in_cell(contract['name'])} | {in_cell(says).replace(chr(92) + '|', 'or')} |")
    rows = "\n".join(lines)
    return f"## Who may import whom\n\n| contract | |\n|---|---|\n{rows}\n"


def _package(name: str) -> str:
    folder = ROOT / name
    parts = [f"## {name}\n\n{_sentence(folder / '__init__.py')}\n"]
    folders = sorted(path.parent for path in folder.rglob("__init__.py") if path.parent != folder and _is_ours(path))
    if name in BY_FOLDER:
        rows = [f"| `{each.relative_to(ROOT).as_posix()}/` | {_sentence(each / '__init__.py')} |" for each in folders]
        return parts[0] + "\n| folder | |\n|---|---|\n" + "\n".join(rows) + "\n"
    for each in (folder, *folders):
        if each != folder:
            parts.append(f"**{each.relative_to(ROOT).as_posix()}/**: {_sentence(each / '__init__.py')}\n")
        modules = sorted(path for path in each.glob("*.py") if path.name != "__init__.py")
        rows = [f"| [{path.name}](../{path.relative_to(ROOT).as_posix()}) | {_sentence(path)} |" for path in modules]
        parts.append("| module | what it is about |\n|---|---|\n" + "\n".join(rows) + "\n")
    return "\n".join(parts)


def _is_ours(path: Path) -> bool:
    """Whether it is of the product, and not of an environment that lies within a package."""
    return not any(part.startswith(".") for part in path.relative_to(ROOT).parts)


def _sentence(path: Path) -> str:
    """The first sentence of a module.

    Raises:
        UnexplainedError: it has none.
    """
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    if not text:
        raise UnexplainedError(path.relative_to(ROOT).as_posix())
    joined = " ".join(text.split("\n\n")[0].split())
    return in_cell(re.split(r"(?<=[.!?])\s+(?=[A-Z`'\"])", joined)[0])
