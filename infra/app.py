"""The CDK app: `python -m infra.app`, or through the CDK command line with `-c stage=prod`."""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from aws_cdk import App, Tags

from infra.names import stack_name
from infra.packaging.asset import asset
from infra.packaging.target import Target
from infra.stage.settings import load_stage, read_context
from infra.worker_stack import WorkerStack
from shared.errors import TahanError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from infra.constructs.function import Package
    from infra.stage.settings import Stage
    from shared.worker import Worker

DEFAULT_STAGE = "dev"
# The command line turns these on, `infra.assembly` does not: the templates of both must be equal.
NO_METADATA = {"aws:cdk:enable-path-metadata": False, "aws:cdk:enable-asset-metadata": False}


def new_app() -> App:
    """An app with the context of `cdk.json`, whether or not the command line passes it in."""
    return App(context=read_context(), post_cli_context=NO_METADATA, analytics_reporting=False)


def chosen_stage(app: App) -> Stage:
    """The stage of `-c stage=`, of the environment's STAGE, or the first stage of all."""
    return load_stage(app.node.try_get_context("stage") or os.environ.get("STAGE") or DEFAULT_STAGE)


def build(app: App, workers: Iterable[Worker], stage: Stage, package: Package) -> WorkerStack:
    """The one stack of a stage."""
    stack = WorkerStack(app, stack_name(stage), stage=stage, workers=workers, package=package)
    Tags.of(stack).add("stage", stage.name)
    return stack


def hollow(folder: Path) -> Package:
    """Assets that hold next to nothing, each in a folder of its own: for a synth that nobody deploys, in seconds."""

    def package(module: str) -> Path:
        path = folder / module
        path.mkdir(parents=True, exist_ok=True)
        (path / "module.txt").write_text(module, encoding="utf-8")
        return path

    return package


def template_of(stage: Stage, workers: Iterable[Worker], package: Package) -> dict[str, Any]:
    """The template of a stage's one stack, synthesised in this process."""
    app = new_app()
    stack = build(app, workers, stage, package)
    template: dict[str, Any] = app.synth().get_stack_by_name(stack.stack_name).template
    return template


def main() -> None:
    """Synthesise the registered workers."""
    from functions.registry import WORKERS  # noqa: PLC0415 - the constructs do not need the product

    app = new_app()
    stage = chosen_stage(app)
    build(app, WORKERS, stage, partial(asset, target=Target.of(stage)))
    app.synth()


if __name__ == "__main__":
    try:
        main()
    except TahanError as refusal:
        sys.exit(str(refusal))
