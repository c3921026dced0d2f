"""The life of a stack in its short form; `make e2e` plays the demo's situations in it, too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from local.demo.display import Display
from local.processes.child import ProcessError
from local.processes.children import Children
from local.stack.cdk import Deployment
from tests.e2e.__main__ import live

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def _the_cdk(tmp_path: Path) -> None:
    """The CDK command line; who works where npm's registry cannot be reached tests all the rest."""
    with Children() as children:
        try:
            Deployment(children, "http://127.0.0.1", tmp_path, print).install()
        except ProcessError as error:
            pytest.skip(f"the CDK command line cannot be installed here, so no stack is deployed: {error}")


@pytest.mark.usefixtures("_the_cdk")
@pytest.mark.timeout(900)
def test_a_stack_is_deployed_smoked_updated_under_load_rolled_back_and_destroyed() -> None:
    done = [step for step, _ in live(Display(to_stderr=True), short=True)]
    assert done == ["deployed", "smoke", "updated under load, rolled back", "destroyed"]
