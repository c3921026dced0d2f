"""The dependencies in an asset: only what a function can load, and small."""

from __future__ import annotations

import ast
import io
import json
import zipfile
from importlib.metadata import Distribution
from typing import TYPE_CHECKING

import pytest

from infra.packaging.dependencies import dependencies
from infra.packaging.imports import imports_of
from infra.packaging.pruning import KEPT, PRUNED
from infra.packaging.target import Target
from infra.stage.settings import ROOT

if TYPE_CHECKING:
    from pathlib import Path

LARGEST_ZIP = 4_200_000  # bytes; Lambda fetches it on every cold start


@pytest.fixture(scope="module")
def installed() -> Path:
    """The product's dependencies for Lambda."""
    return dependencies(Target("arm64", "3.13"))


@pytest.fixture(scope="module")
def imported(installed: Path) -> set[str]:
    """Every name that some module in there imports, anywhere in it but for types."""
    found = set()
    for path in installed.rglob("*.py"):
        parts = path.relative_to(installed).with_suffix("").parts
        package = ".".join(parts[:-1])
        found |= {name for name, _ in imports_of(ast.parse(path.read_text(encoding="utf-8")), package)}
    return found


def zipped(directory: Path) -> int:
    """The size of what is uploaded."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for path in sorted(directory.rglob("*")):
            archive.write(path, path.relative_to(directory))
    return buffer.tell()


def test_every_asset_of_the_product_is_small(assembly: Path) -> None:
    manifest = json.loads((assembly / "tahan-dev.assets.json").read_text(encoding="utf-8"))
    assets = [assembly / f["source"]["path"] for f in manifest["files"].values() if f["source"]["packaging"] == "zip"]
    assert assets
    assert {path.name: size for path in assets if (size := zipped(path)) > LARGEST_ZIP} == {}


@pytest.mark.parametrize("pattern", PRUNED)
def test_what_is_pruned_is_not_there(installed: Path, pattern: str) -> None:
    assert list(installed.glob(pattern)) == []


@pytest.mark.parametrize("module", [pattern for pattern in PRUNED if pattern.endswith(".py")])
def test_no_module_imports_what_is_pruned(imported: set[str], module: str) -> None:
    name = module.removesuffix(".py").replace("/", ".")
    assert name.rpartition(".")[0] in imported
    assert name not in imported


def test_there_is_nothing_but_modules_compiled_files_and_metadata(installed: Path) -> None:
    odd = {
        path.relative_to(installed).as_posix()
        for path in installed.rglob("*")
        if path.is_file() and path.suffix not in {".py", ".so"} and not path.parent.name.endswith(".dist-info")
    }
    assert odd == set()
    assert {path.name for path in installed.glob("*.dist-info/*")} <= KEPT


def test_what_the_runtime_has_is_not_among_them(installed: Path) -> None:
    top = {path.name for path in installed.iterdir()}
    assert {"aws_lambda_powertools", "pydantic", "redis", "urllib3"} <= top
    assert not {"boto3", "botocore", "s3transfer", "aws_cdk", "pytest", "bin"} & top


def test_a_distribution_still_tells_its_name_and_version_and_nothing_more(installed: Path) -> None:
    for info in installed.glob("*.dist-info"):
        distribution = Distribution.at(info)
        name = distribution.metadata["Name"].replace("-", "_")
        assert info.name == f"{name}-{distribution.version}.dist-info"
        assert len((info / "METADATA").read_text(encoding="utf-8").splitlines()) == 3


def test_the_swagger_page_is_a_file_that_only_enable_swagger_reads(installed: Path) -> None:
    assert (installed / "aws_lambda_powertools/event_handler/openapi/swagger_ui/html.py").is_file()
    used = [path for folder in ("shared", "functions") for path in (ROOT / folder).rglob("*.py")]
    assert not [path for path in used if "swagger" in path.read_text(encoding="utf-8")]
