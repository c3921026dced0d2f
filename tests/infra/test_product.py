"""The product's own functions, each imported from its asset as Lambda would: with that and boto3, nothing else."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from functions.registry import WORKERS
from infra.constructs import front_door, lookout, part_counter, relay, sweeper
from infra.names import module_of
from infra.packaging.asset import asset
from infra.packaging.target import Target
from infra.stage.settings import load_stage

# What Lambda's runtime brings; jmespath comes with the asset.
OF_THE_RUNTIME = ("boto3", "botocore", "s3transfer", "dateutil", "six")
IMPORT = (
    "import importlib, sys; known = set(sys.modules); sys.path[:0] = sys.argv[2:];"
    "assert callable(importlib.import_module(sys.argv[1]).handler);"
    "found = [name.partition('.')[0] for name in sys.modules if name not in known];"
    "ours = sum(name in ('functions', 'shared') for name in found);"
    "print(ours, len(found) - ours, *sorted(set(found)))"
)
MOST_BYTES = 9_000_000  # of the front door's sources


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


@dataclass(frozen=True, slots=True)
class ColdStart:
    """What a function may import.

    Attributes:
        ours: modules of ours, which are small; the rooms that they are in count, too.
        others: all others, of which one more often stands for a library more.
        without: libraries that it has no use for.
    """

    ours: int
    others: int
    without: tuple[str, ...] = ()


# The five functions that run no job read no payload, so that they need no pydantic, and no boto3 above botocore.
LIGHT = ("pydantic", "pydantic_core", "boto3", "s3transfer")
MOST = {
    **dict.fromkeys(map(module_of, WORKERS), ColdStart(118, 570)),
    relay.SHAPE.module: ColdStart(46, 343, (*LIGHT, "redis")),
    part_counter.SHAPE.module: ColdStart(43, 343, (*LIGHT, "redis")),
    sweeper.SHAPE.module: ColdStart(57, 345, (*LIGHT, "redis")),
    lookout.SHAPE.module: ColdStart(36, 435, LIGHT),
    front_door.SHAPE.module: ColdStart(151, 640),
}


def imported(module: str, built: Path, runtime: Path) -> list[str]:
    """How many modules of ours and of others an import brings beyond Python's own start, and the names of packages."""
    command = [sys.executable, "-B", "-I", "-S", "-c", IMPORT, module, str(built), str(runtime)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)  # noqa: S603 - our own words
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.split()


@pytest.mark.parametrize("module", MOST)
def test_cdk_05_a_handler_is_imported_from_its_asset_alone_and_imports_what_it_may(module: str, runtime: Path) -> None:
    ours, others, *packages = imported(module, asset(module, Target.of(load_stage("local"))), runtime)
    most = MOST[module]
    assert (int(ours) <= most.ours, int(others) <= most.others) == (True, True), (module, ours, others)
    assert not set(packages) & {*most.without, "infra", "ops", "local", "tests", "benchmarks", "aws_cdk"}


def test_the_front_doors_asset_holds_what_it_imports_and_no_document_of_itself() -> None:
    module = front_door.SHAPE.module
    built = asset(module, Target.of(load_stage("local")))
    ours = {path.relative_to(built / "functions").as_posix() for path in (built / "functions").rglob("*.py")}
    assert {"front_door.py", "http/operations.py", "http/answers.py", "http/caller.py"} <= ours
    assert not {"registry.py", "http/routes.py", "outbox_relay.py", "openapi/document.py"} & ours
    assert sum(path.stat().st_size for path in built.rglob("*.py")) <= MOST_BYTES
