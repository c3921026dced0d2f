"""CDK-02: nothing points in a circle, in one stack or in two; the same app gives the same template."""

from __future__ import annotations

import json
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING

import pytest
from aws_cdk import App, Stack

from infra.app import build, new_app
from infra.constructs.foundation import Foundation
from infra.plan import Plan
from infra.stage.settings import Stage
from infra.worker_service import WorkerService
from infra.worker_stack import WorkerStack
from shared.errors import DeclarationError
from tests.infra.declared import ADDED, ORDERED, PAYING, READING, STAGE, WORKERS
from tests.infra.walk import Walk, references

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.infra.walk import Json

    Package = Callable[[str], Path]


QUIET = Stage(name="dev")  # for workers that call nothing outside


def assert_no_circle(template: Json) -> None:
    resources = template["Resources"]
    graph = {
        name: (references(resource.get("Properties", {})) | set(resource.get("DependsOn", []))) & set(resources)
        for name, resource in resources.items()
    }
    list(TopologicalSorter(graph).static_order())


def test_cdk_02_no_resource_refers_to_itself_in_a_circle(walk: Walk) -> None:
    assert_no_circle(walk.template)


@pytest.fixture(scope="module")
def split(package: Package) -> dict[str, Json]:
    """Templates of the variant with data and workers in two stacks, under one key."""
    app = new_app()
    data = Stack(app, "tahan-data")
    foundation = Foundation(data, "Foundation", plan=Plan(STAGE, WORKERS))
    workers = WorkerStack(app, "tahan-workers", stage=STAGE, workers=WORKERS, package=package, foundation=foundation)
    workers.add_worker(ADDED)
    assembly = app.synth()
    return {stack.stack_name: stack.template for stack in assembly.stacks}


def test_cdk_02_data_and_workers_may_live_in_two_stacks(split: dict[str, Json]) -> None:
    assert set(split) == {"tahan-data", "tahan-workers"}
    for template in split.values():
        assert_no_circle(template)


def test_cdk_02_the_data_stack_knows_nothing_of_the_workers(split: dict[str, Json]) -> None:
    assert "Fn::ImportValue" not in json.dumps(split["tahan-data"])
    data, workers = (Walk(name, split[name]) for name in ("tahan-data", "tahan-workers"))
    assert data.of("AWS::DynamoDB::Table")
    assert not data.of("AWS::SQS::Queue")
    assert not workers.of("AWS::DynamoDB::Table")
    assert not workers.of("AWS::KMS::Key")
    assert len(workers.of("AWS::Lambda::EventSourceMapping")) == len(WORKERS) + 3


def test_cdk_02_a_service_may_be_constructed_by_itself(package: Package) -> None:
    app = new_app()
    stack = WorkerStack(app, "tahan-first", stage=QUIET, workers=[READING], package=package)
    other = Stack(app, "tahan-second")
    WorkerService(other, "Ordered", worker=ORDERED, foundation=stack.foundation, package=package)
    template = app.synth().get_stack_by_name("tahan-second").template
    (mapping,) = Walk("second", template).of("AWS::Lambda::EventSourceMapping").values()
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]


def test_cdk_02_the_same_app_gives_the_same_template(package: Package, declared: Walk) -> None:
    app = new_app()
    stack = build(app, WORKERS, STAGE, package)
    stack.add_worker(ADDED)
    assert app.synth().get_stack_by_name(stack.stack_name).template == declared.template


def test_a_second_relay_on_one_foundation_is_refused(package: Package) -> None:
    app = new_app()
    first = WorkerStack(app, "tahan-first", stage=STAGE, workers=[PAYING], package=package)
    with pytest.raises(DeclarationError) as refused:
        WorkerStack(app, "tahan-second", stage=QUIET, workers=[ORDERED], package=package, foundation=first.foundation)
    assert "stack 'tahan-second' stands on a foundation whose outbox is relayed by stack 'tahan-first'" in str(
        refused.value
    )
    assert "add its workers to 'tahan-first'" in str(refused.value)


def test_a_queue_name_is_measured_with_the_stacks_own_name(package: Package) -> None:
    with pytest.raises(DeclarationError, match="characters, SQS takes 80"):
        WorkerStack(new_app(), "tahan-" + "a" * 60, stage=QUIET, workers=[READING], package=package)


def test_a_worker_that_calls_outside_is_not_added_to_a_network_without_egress(package: Package) -> None:
    stack = WorkerStack(new_app(), "tahan-inside", stage=QUIET, workers=[READING], package=package)
    with pytest.raises(DeclarationError, match="give this worker in `workers` of the stack"):
        stack.add_worker(PAYING)


def test_a_stack_is_refused_before_anything_is_constructed(package: Package) -> None:
    app = App()
    with pytest.raises(DeclarationError, match="nat_gateways=0"):
        WorkerStack(app, "tahan-none", stage=Stage(name="dev", nat_gateways=0), workers=WORKERS, package=package)
    assert app.node.children == []
