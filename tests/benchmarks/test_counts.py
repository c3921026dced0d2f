"""The counts that `make bench` keeps hold in `make test`, too: calls of a job, and what a cold start loads."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from benchmarks.__main__ import KEPT
from benchmarks.bench import Bench
from benchmarks.declared import Sample
from benchmarks.judged import Found, has_fallen, is_met
from benchmarks.measures import calls, cold_start
from benchmarks.running import ROOT
from benchmarks.shown import read_results

if TYPE_CHECKING:
    from benchmarks.declared import Figure
    from local.stack.valkey import Valkey


@pytest.fixture(scope="module")
def counted(aws_endpoint: str, valkey: Valkey) -> dict[str, Found]:
    del aws_endpoint  # AWS is there, as the environment says
    found = calls.run(Bench(valkey_port=valkey.port))
    return {name: Found.of(sample) for name, sample in found.items()}


@pytest.mark.parametrize("figure", calls.MEASURE.figures, ids=lambda figure: figure.name)
def test_a_job_asks_for_no_more_than_is_promised(figure: Figure, counted: dict[str, Found]) -> None:
    assert is_met(figure, counted[figure.name])


def test_the_hand_wired_stack_asks_for_three_of_each(counted: dict[str, Found]) -> None:
    assert {found.peer for found in counted.values()} == {3}


@pytest.mark.parametrize("function", cold_start.FUNCTIONS)
def test_a_cold_start_loads_no_more_modules_than_are_kept(function: str) -> None:
    kept = read_results(json.loads(KEPT.read_text(encoding="utf-8")))["cold_start"][f"modules_{function}"]
    command = [sys.executable, "-m", "benchmarks.imported", f"functions.{function}"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)  # noqa: S603 - ours
    (figure,) = [each for each in cold_start.MEASURE.figures if each.name == f"modules_{function}"]
    found = Found.of(Sample((json.loads(ran.stdout)["modules"],), (kept.peer or 0,)))
    assert not has_fallen(figure, found, kept)
