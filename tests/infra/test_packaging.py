"""What is uploaded for a function, built for real from the lock file."""

from __future__ import annotations

import hashlib
from importlib.metadata import Distribution
from typing import TYPE_CHECKING

import pytest

from infra.binaries import compiled_files
from infra.packaging import EPOCH, Target, asset, check
from infra.settings import Stage
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
        "functions/payments.py": "from shared.retry import Retry\n",
        "functions/users.py": "",
        "functions/registry.py": "from functions import payments, users\n",
        "shared/__init__.py": "",
        "shared/retry.py": "class Retry: ...\n",
        "shared/backends/redis.py": "",
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


def files(directory: Path) -> Iterator[tuple[str, str, float]]:
    for path in sorted(directory.rglob("*")):
        if path.is_file():
            name = path.relative_to(directory).as_posix()
            yield name, hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime


@pytest.mark.parametrize("target", [LAMBDA_ARM, LAMBDA_X86, HOST], ids=["arm64", "x86_64", "host"])
def test_cdk_05_the_compiled_files_are_those_of_the_target(root: Path, build: Path, target: Target) -> None:
    built = asset("functions.payments", target, root=root, build=build)
    assert [path.parent.name for path in compiled_files(built)] == ["pydantic_core"]
    check(built, target)


def test_cdk_05_an_asset_of_another_target_is_refused(root: Path, build: Path) -> None:
    with pytest.raises(DeclarationError, match="is built for x86_64, the function runs on arm64"):
        check(asset("functions.payments", LAMBDA_X86, root=root, build=build), LAMBDA_ARM)


def test_an_asset_holds_its_worker_and_shared_and_nothing_else_of_the_house(root: Path, build: Path) -> None:
    built = asset("functions.payments", LAMBDA_ARM, root=root, build=build)
    ours = [
        path.relative_to(built).as_posix() for top in ("functions", "shared") for path in (built / top).rglob("*.*")
    ]
    assert sorted(ours) == [
        "functions/__init__.py",
        "functions/payments.py",
        "shared/__init__.py",
        "shared/backends/redis.py",
        "shared/retry.py",
    ]
    assert not {"infra", "local", "ops", "tests", "bin"} & {path.name for path in built.iterdir()}


def test_an_asset_holds_the_dependencies_without_what_the_runtime_has(root: Path, build: Path) -> None:
    built = asset("functions.payments", LAMBDA_ARM, root=root, build=build)
    top = {path.name for path in built.iterdir()}
    assert {"aws_lambda_powertools", "pydantic", "redis", "urllib3"} <= top
    assert not {"boto3", "botocore", "s3transfer", "aws_cdk", "pytest"} & top
    assert not list(built.rglob("__pycache__"))
    assert {path.name for path in built.glob("*.dist-info/*")} <= {"METADATA", "entry_points.txt", "top_level.txt"}


def test_a_packaged_distribution_still_tells_its_version(root: Path, build: Path) -> None:
    built = asset("functions.payments", LAMBDA_ARM, root=root, build=build)
    (info,) = built.glob("urllib3-*.dist-info")
    assert Distribution.at(info).version == info.name.removeprefix("urllib3-").removesuffix(".dist-info")


def test_the_same_input_gives_the_same_name_bytes_and_times(root: Path, tmp_path: Path) -> None:
    first = asset("functions.payments", LAMBDA_ARM, root=root, build=tmp_path / "first")
    second = asset("functions.payments", LAMBDA_ARM, root=root, build=tmp_path / "second")
    assert first.name == second.name
    assert list(files(first)) == list(files(second))
    assert {time for _, _, time in files(first)} == {EPOCH}


def test_other_code_gives_another_name_but_for_code_that_it_does_not_hold(root: Path, build: Path) -> None:
    before = asset("functions.payments", LAMBDA_ARM, root=root, build=build)
    (root / "functions" / "users.py").write_text("# changed\n")
    assert asset("functions.payments", LAMBDA_ARM, root=root, build=build) == before
    (root / "shared" / "retry.py").write_text("class Retry: changed = True\n")
    assert asset("functions.payments", LAMBDA_ARM, root=root, build=build) != before
