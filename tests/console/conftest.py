"""A browser, a stack with its console, and a console that may be killed."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from local.outside.payment_provider import Provider
from ops import ROOT
from tests.console.chromium import MISSING, Chromium, found
from tests.console.stage import Stage
from tests.serving import serving
from tests.stack import new_stack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from local.stack.valkey import Valkey


@pytest.fixture(scope="package")
def chromium() -> Iterator[Chromium]:
    program = found()
    if program is None:
        pytest.skip(MISSING)
    with Chromium(program) as browser:
        yield browser


@pytest.fixture(scope="package")
def stage(aws_endpoint: str, valkey: Valkey, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with (
        serving(Provider(0)) as provider,
        Stage(new_stack(valkey, provider), tmp_path_factory.mktemp("console")).running() as stage,
    ):
        yield stage


@pytest.fixture
def browser(chromium: Chromium, stage: Stage) -> Iterator[Chromium]:
    """The browser of somebody who was let in; no script may fail, and nothing be forbidden by the policy."""
    chromium.problems.clear()
    chromium.goto(stage.address)
    yield chromium
    assert not chromium.problems


@pytest.fixture
def alone() -> Iterator[Callable[[int], tuple[subprocess.Popen[str], str]]]:
    """Starts consoles in processes of their own; gives each with its address."""
    children: list[subprocess.Popen[str]] = []

    def start(letters: int) -> tuple[subprocess.Popen[str], str]:
        command = [sys.executable, "-m", "tests.console.alone", str(letters)]
        child = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603 - our own
        children.append(child)
        assert child.stdout is not None
        return child, child.stdout.readline().strip()

    yield start
    for child in children:
        child.kill()
        child.communicate()
