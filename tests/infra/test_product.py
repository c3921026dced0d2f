"""The product's own functions, each imported from its asset as Lambda would: with that and boto3, nothing else."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from functions.registry import WORKERS
from infra.constructs import front_door, lookout, part_counter, relay, sweeper
from infra.names import module_of
from infra.packaging import asset
from infra.settings import load_stage
from infra.target import Target

# What Lambda's runtime brings; jmespath comes with the asset.
OF_THE_RUNTIME = ("boto3", "botocore", "s3transfer", "dateutil", "six")
IMPORT = (
    "import importlib, sys; sys.path[:0] = sys.argv[2:]; assert callable(importlib.import_module(sys.argv[1]).handler);"
    "ours = sum(name.partition('.')[0] in ('functions', 'shared') for name in sys.modules);"
    "print(ours, len(sys.modules) - ours)"
)
# Of the front door's cold start: modules of ours, which are small; all others, boto's among them, of which one more
# often stands for a library more; and the bytes of all sources.
MOST_OF_OURS = 130
MOST_OF_OTHERS = 665
MOST_BYTES = 9_000_000


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of what the runtime has, and nothing else."""
    directory = tmp_path_factory.mktemp("runtime")
    for name in OF_THE_RUNTIME:
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        origin = Path(spec.origin)
        origin = origin.parent if origin.name == "__init__.py" else origin
        (directory / origin.name).symlink_to(origin)
    return directory


@pytest.mark.parametrize(
    "module",
    [*map(module_of, WORKERS), *(each.SHAPE.module for each in (relay, part_counter, sweeper, lookout, front_door))],
)
def test_cdk_05_a_handler_is_imported_from_its_asset_alone(module: str, runtime: Path) -> None:
    built = asset(module, Target.of(load_stage("local")))
    command = [sys.executable, "-B", "-I", "-S", "-c", IMPORT, module, str(built), str(runtime)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)  # noqa: S603 - our own words
    assert ran.returncode == 0, ran.stderr


def test_the_front_doors_asset_holds_what_it_imports_and_no_document_of_itself(runtime: Path) -> None:
    module = front_door.SHAPE.module
    built = asset(module, Target.of(load_stage("local")))
    ours = {path.relative_to(built / "functions").as_posix() for path in (built / "functions").rglob("*.py")}
    assert {"front_door.py", "operations.py", "answers.py", "caller.py"} <= ours
    assert not {"registry.py", "routes.py", "outbox_relay.py", "openapi/document.py"} & ours
    command = [sys.executable, "-B", "-I", "-S", "-c", IMPORT, module, str(built), str(runtime)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)  # noqa: S603 - our own words
    ours_loaded, others_loaded = map(int, ran.stdout.split())
    assert (ours_loaded <= MOST_OF_OURS, others_loaded <= MOST_OF_OTHERS) == (True, True), ran.stdout
    assert sum(path.stat().st_size for path in built.rglob("*.py")) <= MOST_BYTES
