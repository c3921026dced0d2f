"""Templates, each synthesised once: the product's own, and the declared workers with one that a user added."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from infra.app import build, hollow, new_app, template_of
from infra.assembly import synthesise, template_path
from tests.infra.declared import ADDED, STAGE, WORKERS
from tests.infra.walk import Walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from infra.stage.settings import Stage
    from shared.worker import Worker

    Synth = Callable[[Stage, Iterable[Worker]], Walk]


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Assets that hold next to nothing, so that a synth takes seconds."""
    return hollow(tmp_path_factory.getbasetemp() / "assets")


@pytest.fixture(scope="session")
def synth(package: Callable[[str], Path]) -> Synth:
    """Synthesises the one stack of some workers in this process."""

    def of(stage: Stage, workers: Iterable[Worker]) -> Walk:
        return Walk(stage.name, template_of(stage, workers, package))

    return of


@pytest.fixture(scope="session")
def declared(package: Callable[[str], Path]) -> Walk:
    """The declared workers, and one added by the public construct afterwards."""
    app = new_app()
    stack = build(app, WORKERS, STAGE, package)
    stack.add_worker(ADDED)
    return Walk("declared", app.synth().get_stack_by_name(stack.stack_name).template)


@pytest.fixture(scope="session")
def assembly() -> Path:
    """The product's own assembly for the dev stage, with its real assets."""
    return synthesise("dev")


@pytest.fixture(scope="session")
def product(assembly: Path) -> Walk:
    """The template of the product's own workers."""
    return Walk("product", json.loads(template_path(assembly, "dev").read_text(encoding="utf-8")))


@pytest.fixture(scope="session", params=["declared", "product"])
def walk(request: pytest.FixtureRequest) -> Walk:
    """Each template in turn: what is a rule holds in all of them."""
    found: Walk = request.getfixturevalue(request.param)
    return found
