"""What `make bench` has to reach is declared, and both sides run on the libraries that the product is locked to."""

from __future__ import annotations

import tomllib
from collections import Counter

import pytest

from benchmarks.measures import MEASURES, measure_of
from benchmarks.measures.cold_start import FUNCTIONS
from benchmarks.running import PEERS, ROOT
from functions.registry import WORKERS
from infra.names import module_of
from tests.unplayed import UNPLAYED

ASKED = {
    "batch_wait/ten_to_one": "≤ 1.3",
    "calls/dynamodb": "ours ≤ 2",
    "calls/redis": "ours ≤ 2",
    "calls/redis_batch": "ours ≤ 0.4",
    "pipeline_cpu/batch": "≤ 1",
    "pipeline_cpu/alone": "≤ 1",
    "dynamodb_cpu/job": "≤ 1",
    "leases/single": "≤ 0.85",
    "leases/batch": "≤ 0.3",
    "cache/hit_dogpile": "≤ 0.75",
    "cache/hit_cashews": "≤ 0.3",
    "cache/cold_dogpile": "ours ≤ 1",
    "cold_start/modules_payments": "≤ 0.667",
    "cold_start/bytes_front_door": "≤ 0.667",
    "zip_size/payments": "ours ≤ 4.2",
    "throughput/empty_celery_wall": "≥ 1",
    "throughput/io_celery_cpu": "≥ 1",
    "throughput/empty_dramatiq_cpu": "≥ 1",
    "throughput/io_dramatiq_wall": "≥ 1",
    "front_door/accepted": "≥ 1",
    "relay/wall": "≥ 1",
}
FIGURES = {f"{measure.name}/{figure.name}": figure for measure in MEASURES for figure in measure.figures}


@pytest.mark.parametrize(("name", "bound"), ASKED.items())
def test_what_is_asked_is_declared_with_its_bound(name: str, bound: str) -> None:
    target = FIGURES[name].target
    assert target is not None
    assert target.text == bound


def test_names_are_unique_and_every_measure_is_explained() -> None:
    names = Counter(f"{measure.name}/{figure.name}" for measure in MEASURES for figure in measure.figures)
    assert [name for name, times in names.items() if times > 1] == []
    assert all(measure.title and measure.explanation for measure in MEASURES)
    assert [measure_of(measure.name) for measure in MEASURES] == list(MEASURES)


def test_the_bare_peers_are_shown_without_a_target() -> None:
    bare = [figure for name, figure in FIGURES.items() if "_bare_" in name]
    assert len(bare) == 8
    assert not any(figure.target for figure in bare)


def test_the_cold_start_of_every_function_is_counted() -> None:
    entries = {
        path.stem
        for path in (ROOT / "functions").glob("*.py")
        if "\ndef handler(" in (text := path.read_text(encoding="utf-8")) or "\nhandler = " in text
    }
    workers = {module_of(worker).removeprefix("functions.") for worker in WORKERS}
    unplayed = {module_of(worker).removeprefix("functions.") for worker in WORKERS if worker.name in UNPLAYED}
    assert entries >= workers
    assert set(FUNCTIONS) == entries - unplayed


def test_peers_run_on_the_versions_that_the_product_is_locked_to_from_the_same_registry() -> None:
    ours, theirs = (
        {package["name"]: package for package in tomllib.loads(path.read_text(encoding="utf-8"))["package"]}
        for path in (ROOT / "uv.lock", PEERS / "uv.lock")
    )
    shared = ("aws-lambda-powertools", "boto3", "botocore", "cronsim", "pydantic", "redis", "urllib3")
    assert {name: theirs[name]["version"] for name in shared} == {name: ours[name]["version"] for name in shared}
    assert {tuple(package["source"].items()) for package in theirs.values() if "registry" in package["source"]} == {
        tuple(ours["boto3"]["source"].items())
    }
