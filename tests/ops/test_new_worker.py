"""`tahan new worker`: what it refuses, what it would write, and that a worker it wrote is green at once, in a copy of the tree."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from infra.settings import ROOT
from ops.exits import Exit
from ops.new_worker import WRITERS
from ops.worker_files import REGISTRY, Names, changed, written
from tests.ops.desk import Desk

if TYPE_CHECKING:
    from collections.abc import Iterator

NAMES = Names("parcels", "weigh-parcel")
LEFT_OUT = (".git", ".venv", ".tools", "node_modules", "build", "__pycache__", ".*_cache", ".hypothesis")
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


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("Parcels",), "use lower case words"),
        (("parcels_new",), "use lower case words"),
        (("x" * 41,), "shorten it"),
        (("parcels-dead-letters",), "like a dead-letter queue"),
        (("import",), "Python's own"),
        (("list",), "Python's own"),
        (("users",), "users"),
        (("orders",), "declared by worker 'payments'"),
        (("front-door",), "functions/front_door.py is there already"),
        (("parcels", "--job", "capture-payment"), "declared by worker 'payments'"),
        (("parcels", "--job", "weigh"), "call it by what it does"),
        (("parcels", "--job", "unit-of-work"), "call it by what it does"),
        (("parcels", "--job", "weigh-" + "x" * 60), "60 characters"),
    ],
)
def test_a_name_that_is_wrong_or_taken_is_refused_with_what_to_do(words: tuple[str, ...], told: str) -> None:
    desk = Desk()
    assert desk.run("new", "worker", *words, "--dry-run") == Exit.REFUSED
    assert told in desk.err
    assert "Nothing was written" in desk.err


def test_a_dry_run_says_all_that_would_be_written_and_writes_nothing() -> None:
    desk = Desk()
    assert desk.run("new", "worker", "parcels", "--job", "weigh-parcel", "--dry-run", "--json") == Exit.DONE
    assert desk.json["written"] is False
    assert desk.json["new"] == sorted(written(NAMES))
    assert REGISTRY in desk.json["changed"]
    assert len(desk.json["then_run"]) == len(WRITERS)
    assert not (ROOT / "functions" / "parcels.py").exists()


def test_a_file_that_is_not_as_it_is_known_is_refused_and_named() -> None:
    def read(file: str) -> str:
        return "WORKERS = []\n" if file == REGISTRY else (ROOT / file).read_text(encoding="utf-8")

    with pytest.raises(Exception, match=r"functions/registry\.py is not as this command knows it"):
        changed(NAMES, read)


def test_the_lines_are_added_in_their_place_and_nothing_else_changes() -> None:
    for file, text in changed(NAMES, lambda file: (ROOT / file).read_text(encoding="utf-8")).items():
        before, after = (ROOT / file).read_text(encoding="utf-8").splitlines(), text.splitlines()
        assert "parcels" in "\n".join(line for line in after if line not in before), file
        assert len([line for line in before if line not in after]) <= 1, file


class Tree:
    """A copy of the tree, in which commands are run as its user would."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*LEFT_OUT))
        for name in (".venv", ".tools"):
            if (ROOT / name).exists():
                (folder / name).symlink_to(ROOT / name)

    def run(self, *words: str) -> str:
        """Run a module or a program of the environment; give what it wrote.

        Raises:
            AssertionError: it failed.
        """
        environ = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "PYTEST"))}
        program = [str(Path(sys.executable).with_name(words[0])), *words[1:]]
        ran = subprocess.run(program, cwd=self.folder, env=environ, capture_output=True, text=True, check=False)  # noqa: S603 - ours
        assert ran.returncode == 0, f"{' '.join(words)}:\n{ran.stdout[-6000:]}\n{ran.stderr[-3000:]}"
        return ran.stdout


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tree]:
    """A tree in which the worker was written."""
    copied = Tree(tmp_path_factory.mktemp("new") / "tree")
    told = json.loads(copied.run("python", "-m", "ops", "new", "worker", "parcels", "--job", "weigh-parcel", "--json"))
    assert told["written"]
    yield copied
    shutil.rmtree(copied.folder)


@pytest.mark.timeout(600)
def test_a_new_worker_is_in_the_house_s_form_and_its_types_hold(tree: Tree) -> None:
    new = [file for file in written(NAMES) if file.endswith(".py")]
    tree.run("ruff", "check", ".")
    tree.run("ruff", "format", "--check", ".")
    tree.run("mypy", *new, REGISTRY)
    tree.run("lint-imports")


@pytest.mark.timeout(600)
def test_a_new_worker_s_tests_and_all_that_list_workers_are_green(tree: Tree) -> None:
    tree.run("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", *OF_ALL_WORKERS)


def test_it_is_not_written_a_second_time(tree: Tree) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "ops", "new", "worker", "parcels"],
        cwd=tree.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == Exit.REFUSED
    assert "is there already" in ran.stderr or "declared by worker" in ran.stderr
