"""The templates that are audited: each stage of `cdk.json` but the local one, with everything it could deploy.

Assets play no part, so a folder that holds next to nothing stands for each of them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from infra.app import hollow, template_of
from infra.packaging.built import BUILD
from infra.stage.identity import Identity
from infra.stage.settings import load_stage, read_context

if TYPE_CHECKING:
    from pathlib import Path

    from infra.stage.settings import Stage

FOLDER = BUILD / "audit"
# A stage without clients has no front door, and one that was never looked at could be turned on by a line of cdk.json.
SOME_CLIENTS = Identity(issuer="https://login.example.com", audience=("operations",))


@dataclass(frozen=True, slots=True)
class Audited:
    """A template that is audited.

    Attributes:
        name: of the stage.
        path: the file, called after it.
        retain: whether its data must outlive the stack.
    """

    name: str
    path: Path
    retain: bool


def stages() -> list[Stage]:
    """Every stage that goes to AWS, each with a front door."""
    known = cast("dict[str, object]", read_context()["stages"])  # `load_stage` refuses what is none
    loaded = (load_stage(name) for name in known)
    return [
        stage if stage.identity else stage.model_copy(update={"identity": SOME_CLIENTS})
        for stage in loaded
        if not stage.on_host
    ]


def synthesise(stage: Stage, folder: Path = FOLDER) -> Audited:
    """Write the template of a stage's registered workers into a folder."""
    from functions.registry import WORKERS  # noqa: PLC0415 - rules and exceptions do not need the product

    template = template_of(stage, WORKERS, hollow(folder / "assets"))
    return write(stage.name, template, folder, retain=stage.retain)


def write(name: str, template: object, folder: Path, *, retain: bool = False) -> Audited:
    """Keep a template in a folder for the tools to read."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.template.json"
    path.write_text(json.dumps(template, indent=1), encoding="utf-8")
    return Audited(name, path, retain)
