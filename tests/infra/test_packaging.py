"""What is uploaded for a function, built for real from the lock file."""

from __future__ import annotations

import ast
import hashlib
import os
from typing import TYPE_CHECKING

import pytest

from infra.packaging import built as building
from infra.packaging.asset import asset
from infra.packaging.binaries import compiled_files
from infra.packaging.built import EPOCH, RULES
from infra.packaging.imports import imports_of
from infra.packaging.target import Target
from infra.stage.settings import ROOT, Stage
from shared.errors import DeclarationError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LAMBDA_ARM = Target("arm64", "3.13")
LAMBDA_X86 = Target("x86_64", "3.13")
HOST = Target.of(Stage(name="local", architecture="host", python="host"))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A house with two workers, their registry, and things that never belong into a function."""
    root = tmp_path_factory.mktemp("house")
    for name, code in {
        "functions/__init__.py": "",
        "functions/payments.py": "from shared.retry import Retry\nhandler = Retry\n",
        "functions/users.py": "",
        "functions/registry.py": "from functions import payments, users\n",
        "shared/__init__.py": "",
        "shared/retry.py": "class Retry: ...\n",
        "shared/backends/redis/leases.py": "",
        "infra/app.py": "",
        "tests/test_payments.py": "",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(code)
    (root / "shared" / "__pycache__").mkdir()
    (root / "shared" / "__pycache__" / "retry.cpython-313.pyc").write_bytes(b"")
    return root


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build directory of its own, since the house is none of the product's."""
    return tmp_path_factory.mktemp("build")


def contents(directory: Path) -> Iterator[tuple[str, str, float, str]]:
    for path in [directory, *sorted(directory.rglob("*"))]:
        digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "directory"
        status = path.stat()
        yield path.relative_to(directory).as_posix(), digest, status.st_mtime, f"{status.st_mode & 0o7777:o}"


@pytest.mark.parametrize("target", [LAMBDA_ARM, LAMBDA_X86, HOST], ids=["arm64", "x86_64", "host"])
def test_cdk_05_the_compiled_files_are_those_of_the_target(root: Path, build: Path, target: Target) -> None:
    built = asset("functions.payments", target, root=root, build=build)
    assert [path.parent.name for path in compiled_files(built)] == ["pydantic_core"]
    target.check(built)


def test_cdk_05_an_asset_of_another_target_is_refused(root: Path, build: Path) -> None:
    with pytest.raises(DeclarationError, match="is built for x86_64, the function runs on arm64"):
        LAMBDA_ARM.check(asset("functions.payments", LAMBDA_X86, root=root, build=build))


def test_an_asset_holds_its_worker_and_shared_and_nothing_else_of_the_house(root: Path, build: Path) -> None:
    built = asset("functions.payments", LAMBDA_ARM, root=root, build=build)
    ours = [
        path.relative_to(built).as_posix() for top in ("functions", "shared") for path in (built / top).rglob("*.*")
    ]
    assert sorted(ours) == [
        "functions/__init__.py",
        "functions/payments.py",
        "shared/__init__.py",
        "shared/backends/redis/leases.py",
        "shared/retry.py",
    ]
    assert not {"infra", "local", "ops", "tests", "bin"} & {path.name for path in built.iterdir()}


@pytest.mark.parametrize("target", [LAMBDA_ARM, HOST], ids=["arm64", "host"])
def test_the_same_input_gives_the_same_name_bytes_times_and_modes(root: Path, tmp_path: Path, target: Target) -> None:
    first = asset("functions.payments", target, root=root, build=tmp_path / "first")
    umask = os.umask(0o077)
    try:
        second = asset("functions.payments", target, root=root, build=tmp_path / "second")
    finally:
        os.umask(umask)
    assert first.name == second.name
    assert list(contents(first)) == list(contents(second))
    assert {time for _, _, time, _ in contents(first)} == {EPOCH}
    assert {(digest == "directory", mode) for _, digest, _, mode in contents(first)} == {(True, "755"), (False, "644")}


def test_only_for_the_host_there_is_bytecode_and_all_of_it(root: Path, build: Path) -> None:
    assert not list(asset("functions.payments", LAMBDA_ARM, root=root, build=build).rglob("*.pyc"))
    on_host = asset("functions.payments", HOST, root=root, build=build)
    sources = {path.relative_to(on_host) for path in on_host.rglob("*.py")}
    compiled = {path.relative_to(on_host) for path in on_host.rglob("*.pyc")}
    assert {path.parent.parent / f"{path.name.partition('.')[0]}.py" for path in compiled} == sources


OF_THE_STAGE = {"infra.stage.settings"}  # whose every value that matters is in the name of the asset


def test_the_rules_of_packaging_are_all_the_code_that_it_runs() -> None:
    seen: set[str] = set()
    following = ["asset", "target"]
    while following:
        name = following.pop()
        if name in seen:
            continue
        seen.add(name)
        tree = ast.parse((ROOT / "infra" / "packaging" / f"{name}.py").read_text())
        ours = {
            module for module, named in imports_of(tree, "infra.packaging") if module.startswith("infra.") and not named
        }
        following += [module.rpartition(".")[2] for module in ours if module.startswith("infra.packaging.")]
        assert {module for module in ours if not module.startswith("infra.packaging.")} <= OF_THE_STAGE
    assert {path.stem for path in RULES} == seen | {"__init__"}


def test_another_rule_gives_another_asset(
    root: Path, build: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = asset("functions.payments", LAMBDA_ARM, root=root, build=build)
    pruning = tmp_path / "pruning.py"
    pruning.write_text("# other rules")
    monkeypatch.setattr(building, "RULES", [pruning if path.name == "pruning.py" else path for path in RULES])
    assert asset("functions.payments", LAMBDA_ARM, root=root, build=build).name != before.name
    assert len([path for path in (build / "dependencies").iterdir() if "." not in path.name]) > 1


def test_other_code_gives_another_name_but_for_code_that_it_does_not_hold(root: Path, build: Path) -> None:
    before = asset("functions.payments", LAMBDA_ARM, root=root, build=build)
    (root / "functions" / "users.py").write_text("# changed\n")
    assert asset("functions.payments", LAMBDA_ARM, root=root, build=build) == before
    (root / "shared" / "retry.py").write_text("class Retry: changed = True\n")
    assert asset("functions.payments", LAMBDA_ARM, root=root, build=build) != before
