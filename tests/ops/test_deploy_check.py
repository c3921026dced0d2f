"""`tahan deploy-check`: tells what a deploy would do, and above all what it would destroy."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest

from functions.registry import WORKERS
from ops.exits import CommandError, Exit
from ops.stack.comparison import compared
from ops.stack.drift import synthesised
from ops.stack.running import Depth, Receiving
from shared.backends.mappings import Mapped
from shared.naming import camel
from tests.ops.desk import OUTPUTS, Desk

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TEMPLATE: dict[str, Any] = {
    "Resources": {
        "Jobs": {
            "Type": "AWS::DynamoDB::Table",
            "Properties": {"KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}]},
            "DeletionPolicy": "Retain",
        },
        "Consumer": {"Type": "AWS::Lambda::Function", "Properties": {"Code": {"S3Key": "a"}, "Timeout": 30}},
        "ConsumerVersionA": {"Type": "AWS::Lambda::Version", "Properties": {}},
        "Queue": {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "tahan-dev-order-lines"}},
    },
    "Outputs": {"QueueOrderLines": {"Value": {"Ref": "Queue"}}},
}


def same(_: dict[str, Any]) -> None:
    pass


def new_code(template: dict[str, Any]) -> None:
    template["Resources"]["Consumer"]["Properties"]["Code"]["S3Key"] = "b"
    del template["Resources"]["ConsumerVersionA"]
    template["Resources"]["ConsumerVersionB"] = {"Type": "AWS::Lambda::Version", "Properties": {}}


def new_key(template: dict[str, Any]) -> None:
    template["Resources"]["Jobs"]["Properties"]["KeySchema"][0]["AttributeName"] = "other"


def no_worker(template: dict[str, Any]) -> None:
    del template["Resources"]["Queue"], template["Outputs"]["QueueOrderLines"]


class House(Desk):
    """A stack that was deployed from the template above, and code that says something else."""

    def after(self, folder: Path, change: Callable[[dict[str, Any]], None]) -> Desk:
        new = copy.deepcopy(TEMPLATE)
        change(new)
        (folder / "tahan-dev.template.json").write_text(json.dumps(new), encoding="utf-8")
        self.templates["tahan-dev"] = TEMPLATE
        self.assemblies["dev"] = folder
        for worker in WORKERS:
            if (mapping := OUTPUTS.get(f"Mapping{camel(worker.name)}")) is not None:
                self.running.states[worker.name] = Receiving("Enabled", Mapped.read(mapping).concurrency)
        return self


def test_the_same_is_the_same(tmp_path: Path) -> None:
    desk = House().after(tmp_path, same)
    assert desk.run("deploy-check") == Exit.DONE
    assert (desk.out, desk.err) == ("", "The deployed template is the one of this code.\n")


def test_a_change_is_told_by_its_resource_and_its_part_and_a_version_not_at_all(tmp_path: Path) -> None:
    desk = House().after(tmp_path, new_code)
    assert desk.run("deploy-check", "--json") == Exit.DIFFERS
    assert desk.json == {
        "changes": [{"resource": "Consumer", "type": "AWS::Lambda::Function", "deed": "changed", "parts": ["Code"]}],
        "harms": [],
        "messages_in_queues_that_go": {},
        "drifts": [],
    }
    assert desk.run("deploy-check") == Exit.DIFFERS
    assert "1 AWS::Lambda::Function changed." in desk.err


def test_a_table_that_would_be_replaced_is_data_at_risk(tmp_path: Path) -> None:
    desk = House().after(tmp_path, new_key)
    assert desk.run("deploy-check") == Exit.HARMFUL
    assert "DATA AT RISK: AWS::DynamoDB::Table Jobs would be replaced: KeySchema cannot change in place." in desk.err


def test_a_queue_that_goes_is_data_at_risk_and_messages_in_it_are_counted(tmp_path: Path) -> None:
    desk = House().after(tmp_path, no_worker)
    desk.running.depths["order-lines"] = Depth(1, 2, 3, 4)
    assert desk.run("deploy-check", "--json") == Exit.HARMFUL
    assert desk.json["messages_in_queues_that_go"] == {"order-lines": 10}
    assert [harm["resource"] for harm in desk.json["harms"]] == ["Queue"]
    assert desk.run("deploy-check") == Exit.HARMFUL
    assert "order-lines: its queues go, and hold 10 messages: drain it first" in desk.err


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (Receiving("Disabled", 20), "worker payments receives nothing: its mapping is Disabled"),
        (Receiving("Enabled", 2), "worker payments runs 2 batches at one time, and 20 were deployed"),
    ],
)
def test_what_runs_otherwise_than_deployed_is_told(tmp_path: Path, state: Receiving, words: str) -> None:
    desk = House().after(tmp_path, same)
    desk.running.states["payments"] = state
    assert desk.run("deploy-check") == Exit.DIFFERS
    assert f"Not as deployed: {words}" in desk.err


def test_a_rollout_that_is_under_way_is_told(tmp_path: Path) -> None:
    desk = House().after(tmp_path, same)
    desk.running.shares["consumer-payments"] = {"7": 0.1}
    assert desk.run("deploy-check") == Exit.DIFFERS
    assert "worker payments is between two versions (10% by version 7)" in desk.err


def test_a_deploy_that_did_not_succeed_is_told(tmp_path: Path) -> None:
    desk = House().after(tmp_path, same)
    desk.stack_status = "UPDATE_ROLLBACK_COMPLETE"
    assert desk.run("deploy-check") == Exit.DIFFERS
    assert "the stack is UPDATE_ROLLBACK_COMPLETE" in desk.err


def test_a_parameter_that_a_deploy_would_leave_as_it_is_is_told(tmp_path: Path) -> None:
    desk = House().after(tmp_path, lambda template: template.update(Parameters={"Issuer": {"Default": "https://new"}}))
    desk.parameters = {"Issuer": "https://old"}
    assert desk.run("deploy-check", "--json") == Exit.DIFFERS
    assert desk.json["changes"] == [{"resource": "Issuer", "type": "Parameter", "deed": "added", "parts": ["Default"]}]
    assert desk.run("deploy-check") == Exit.DIFFERS
    assert "parameter Issuer is 'https://old', this code says 'https://new': give it by --parameters" in desk.err


def test_protection_that_is_taken_away_is_data_at_risk(tmp_path: Path) -> None:
    desk = House().after(tmp_path, lambda template: template["Resources"]["Jobs"].update(DeletionPolicy="Delete"))
    assert desk.run("deploy-check") == Exit.HARMFUL
    assert "DATA AT RISK: AWS::DynamoDB::Table Jobs would be less protected: DeletionPolicy" in desk.err


def test_an_assembly_is_taken_as_it_is_and_a_stage_is_synthesised(tmp_path: Path) -> None:
    desk = House().after(tmp_path, same)
    desk.assemblies.clear()
    assert desk.run("deploy-check", "--assembly", str(tmp_path)) == Exit.DONE
    assert desk.run("deploy-check", "--stage", "odd") == Exit.REFUSED
    assert "stage 'odd' is not in cdk.json" in desk.err


def test_a_stack_is_of_the_stage_that_it_is_tagged_with(tmp_path: Path) -> None:
    desk = House().after(tmp_path, same)
    desk.assemblies = {"eu-dev": tmp_path}
    desk.tags = {"stage": "eu-dev"}
    assert desk.run("deploy-check") == Exit.DONE


def test_an_assembly_of_another_stack_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tahan-prod.template.json").write_text("{}", encoding="utf-8")
    desk = House()
    desk.templates["tahan-dev"] = TEMPLATE
    assert desk.run("deploy-check", "--assembly", str(tmp_path)) == Exit.REFUSED
    assert "holds no template of tahan-dev (it holds tahan-prod): name its --stage" in desk.err


def test_each_deed_is_told() -> None:
    after = copy.deepcopy(TEMPLATE)
    after["Resources"]["New"] = {"Type": "AWS::SNS::Topic"}
    del after["Resources"]["Consumer"]
    after["Resources"]["Jobs"]["DeletionPolicy"] = "Delete"
    told = {each.name: (each.deed, each.parts) for each in compared(TEMPLATE, after).differences}
    assert told == {"New": ("added", ()), "Consumer": ("removed", ()), "Jobs": ("changed", ("DeletionPolicy",))}


def test_code_that_cannot_be_synthesised_says_why() -> None:
    with pytest.raises(CommandError, match="stage 'odd'") as refused:
        synthesised("odd")
    assert refused.value.status is Exit.REFUSED
