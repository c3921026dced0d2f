"""`docs/reference/errors.md`: the errors of the product with what their reader does, and every reason that the code gives."""

from __future__ import annotations

import ast
import inspect
from typing import TYPE_CHECKING

from infra.stage.settings import ROOT
from reference.explained import UnexplainedError, in_cell
from shared import errors
from shared.classification import Kind
from shared.errors import HandlerEnded, TahanError
from shared.outcome import Because

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

HEAD = """# Errors and reasons

Every error is a `TahanError` (`shared/errors.py`); its sentence says what its reader does. What a handler does not catch is classified: *transient* (a later
attempt may help), *permanent* (none can), *unknown* (a bug, few attempts). This page is written by `python -m reference`; what to do about each reason of a dead
letter stands in the [message format](messages.md#reasons-of-a-dead-letter), problem codes over HTTP in [http](http.md).
"""
FOLDERS = ("shared", "functions")
REASONED = ("Malformed", "DeadLetter")
# What a handler meets when it uses `work`; the rest is for who declares, deploys or operates.
IN_A_HANDLER = (
    "Conflict",
    "ClaimLost",
    "LeaseLost",
    "Stopping",
    "CancelAsked",
    "PartsUnderWay",
    "HandOver",
    "InvalidationFailed",
    "Unavailable",
    "Ambiguous",
    "Unrepeatable",
    "AlreadyCalled",
    "NotNow",
    "Rejected",
    "Refused",
)


def all_errors() -> dict[str, type[TahanError]]:
    """The errors, by name, in the order of their module."""
    return {
        name: each
        for name, each in vars(errors).items()
        if inspect.isclass(each) and issubclass(each, TahanError) and each.__module__ == errors.__name__
    }


def reasons() -> dict[str, list[str]]:
    """The reasons that the code gives to dead letters and refusals as they stand there, with the modules that give them."""
    found: dict[str, set[str]] = {}
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            where = path.relative_to(ROOT).as_posix()
            for reason in _given(ast.parse(path.read_text(encoding="utf-8"))):
                found.setdefault(reason, set()).add(where)
    return {reason: sorted(found[reason]) for reason in sorted(found)}


def _given(tree: ast.AST) -> Iterator[str]:
    """Reasons that stand as a text in the call, or in a name just above it."""
    for scope in ast.walk(tree):
        if not isinstance(scope, ast.FunctionDef | ast.Module):
            continue
        named: dict[str, list[str]] = {}
        for node in ast.walk(scope):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str(reason))):
                    named.setdefault(name, []).append(reason)
        for node in ast.walk(scope):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in REASONED and node.args:
                match node.args[0]:
                    case ast.Constant(value=str(reason)):
                        yield reason
                    case ast.Name(id=name) if name in named:
                        yield from named[name]


def page() -> str:
    """The page."""
    known = all_errors()
    ends = {name: each for name, each in known.items() if issubclass(each, HandlerEnded) and each is not HandlerEnded}
    met = {name: known[name] for name in IN_A_HANDLER}
    rest = {name: each for name, each in known.items() if name not in {*ends, *met, "TahanError", "HandlerEnded"}}
    kinds = "\n".join(f"| `{kind.value}` | {in_cell(_comment(Kind, kind.name))} |" for kind in Kind)
    waits = "\n".join(f"| `{each.value}` | {in_cell(_comment(Because, each.name))} |" for each in Because)
    given = "\n".join(
        f"| `{reason}` | {', '.join(f'`{file}`' for file in files)} |" for reason, files in reasons().items()
    )
    return "\n".join(
        [
            HEAD,
            _table("What a handler raises to end", ends),
            _table("What a handler meets", met),
            _table("The others", rest),
            f"## Kinds of failures\n\nThe reason of an attempt that failed, where nothing else gave one.\n\n| reason | |\n|---|---|\n{kinds}\n",
            f"## Why a delivery was postponed\n\n`because` in the log; none of them spends an attempt.\n\n| because | |\n|---|---|\n{waits}\n",
            f"## Reasons that the code gives\n\nOf dead letters, and of requests that are refused.\n\n| reason | given by |\n|---|---|\n{given}\n",
        ]
    )


def _table(title: str, of: Mapping[str, type[TahanError]]) -> str:
    lines = "\n".join(f"| `{name}` | {in_cell(_said(name, each))} |" for name, each in of.items())
    return f"## {title}\n\n| error | what it says |\n|---|---|\n{lines}\n"


def _said(name: str, error: type[TahanError]) -> str:
    if not error.__doc__:
        raise UnexplainedError(name)
    bases = [base.__name__ for base in error.__bases__ if base not in {TahanError, HandlerEnded}]
    return f"{error.__doc__}{f' A kind of `{bases[0]}`.' if bases else ''}"


def _comment(owner: type, name: str) -> str:
    """What stands behind a member of an enumeration; nothing where its name says it."""
    for line in inspect.getsource(owner).splitlines():
        if line.strip().startswith(f"{name} = "):
            return line.partition("#")[2].strip()
    return ""
