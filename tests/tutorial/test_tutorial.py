"""The tutorial holds: the worker of its first command is green at once, and each step up to the local stack ends as the page says.

What needs the local stack is replayed by `make tutorial`; here its commands are read by the real parser, and its ids compared.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from ops.cli import parser
from ops.exits import Exit
from ops.new.files import REGISTRY, Names, written
from shared.job_record import SYSTEM, operation_id, record_id
from tests.tutorial.page import PAGE, Run, StaysUp, Write, steps

if TYPE_CHECKING:
    from tests.tutorial.tree import Tree

STEPS = list(steps())
UP = next(place for place, step in enumerate(STEPS) if isinstance(step, StaysUp))
NAMES = Names("parcels", "weigh-parcel")
# The tests that list workers, or hold a page or a record of a stack to them; the others know nothing of a new one.
OF_ALL_WORKERS = (
    "tests/functions/test_parcels.py",
    "tests/benchmarks/test_declared.py",
    "tests/contracts",
    "tests/functions/test_cost_page.py",
    "tests/infra/test_product.py",
    "tests/infra/test_stateful.py",
    "tests/local/test_verdict.py",
    "tests/permissions",
    "tests/reference",
    "tests/unit/test_docs.py",
)
pytestmark = pytest.mark.timeout(600)


def test_a_new_worker_is_in_the_house_s_form_and_its_types_hold(tree: Tree) -> None:
    new = [file for file in written(NAMES) if file.endswith(".py")]
    tree.run(tree.program("ruff"), "check", ".")
    tree.run(tree.program("ruff"), "format", "--check", ".")
    tree.run(tree.program("mypy"), *new, REGISTRY)
    tree.run(tree.program("lint-imports"))


def test_a_new_worker_s_tests_and_all_that_list_workers_are_green(tree: Tree) -> None:
    tree.run(tree.program("python"), "-m", "pytest", "-q", "-p", "no:cacheprovider", *OF_ALL_WORKERS)


def test_it_is_not_written_a_second_time(tree: Tree) -> None:
    told = tree.run(tree.program("python"), "-m", "ops", "new", "worker", "parcels", ends=Exit.REFUSED)
    assert "declared by worker 'parcels'" in told


def test_each_step_up_to_the_local_stack_ends_as_the_page_says(tree: Tree) -> None:
    for step in STEPS[1:UP]:
        # What `make check` looks at is looked at below, for the files of the tutorial alone.
        quick = (
            replace(step, lines=tuple(line for line in step.lines if line != "make check"))
            if isinstance(step, Run)
            else step
        )
        list(tree.do(quick))
    files = [step.file for step in STEPS if isinstance(step, Write)]
    tree.run(tree.program("ruff"), "check", *files)
    tree.run(tree.program("ruff"), "format", "--check", *files)
    tree.run(tree.program("mypy"), *files)
    tree.run(
        tree.program("python"), "-m", "pytest", "-q", "-p", "no:cacheprovider", *OF_ALL_WORKERS[:1], "tests/contracts"
    )


def test_every_command_of_the_page_is_understood() -> None:
    lines = [line for step in STEPS if isinstance(step, Run) for line in step.lines]
    commands = [shlex.split(line)[1:] for line in lines if line.startswith("./tahan ")]
    assert len(commands) >= 8
    for words in commands:
        parser().parse_args(words)


def test_the_operations_that_the_page_names_are_those_of_its_keys() -> None:
    text = PAGE.read_text(encoding="utf-8")
    keys = set(re.findall(r"--key (\S+)", text))
    known = {operation_id(record_id(SYSTEM, "weigh-parcel", key)) for key in keys}
    assert set(re.findall(r"op_[0-9a-f]{64}", text)) <= known
