"""How a new version takes over: by an alias that everything calls, moved at once or step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from infra.stage.settings import Stage
from tests.infra.declared import IDENTITY, PAYING, READING
from tests.infra.walk import listed, plain, references, target, text

if TYPE_CHECKING:
    from tests.infra.conftest import Synth
    from tests.infra.walk import Walk

OF_A_WORKER = ("ConsumerRolloutAlarmsVersionErrors", "AlarmsRecordFailures")


@pytest.fixture(scope="module")
def gradual(synth: Synth) -> Walk:
    sizes = {"paying": {"provisioned_concurrency": 5}, "front-door": {"provisioned_concurrency": 2, "memory": 1024}}
    stage = {"name": "dev", "rollout": "canary-10-percent-5-minutes", "identity": IDENTITY, "sizes": sizes}
    return synth(Stage.model_validate(stage), (PAYING, READING))


def test_whatever_calls_a_function_calls_its_alias(walk: Walk) -> None:
    functions, aliases = walk.of("AWS::Lambda::Function"), walk.of("AWS::Lambda::Alias")
    assert sorted(target(alias["FunctionName"]) for alias in aliases.values()) == sorted(functions)
    assert {alias["Name"] for alias in aliases.values()} == {"live"}
    called = [mapped["FunctionName"] for mapped in walk.of("AWS::Lambda::EventSourceMapping").values()]
    called += [to["Arn"] for rule in walk.of("AWS::Events::Rule").values() for to in rule["Targets"]]
    called += [each["IntegrationUri"] for each in walk.of("AWS::ApiGatewayV2::Integration").values()]
    called += [permission["FunctionName"] for permission in walk.of("AWS::Lambda::Permission").values()]
    assert {target(each) for each in called} <= set(aliases)


def test_an_alias_stands_for_a_version_that_outlives_the_next_deploy(walk: Walk) -> None:
    for alias in walk.of("AWS::Lambda::Alias").values():
        version = walk.template["Resources"][target(alias["FunctionVersion"])]
        assert (version["Type"], version["DeletionPolicy"]) == ("AWS::Lambda::Version", "Retain")


def test_at_once_there_is_no_codedeploy(declared: Walk) -> None:
    assert not [r for r in declared.template["Resources"].values() if r["Type"].startswith("AWS::CodeDeploy::")]


def test_a_gradual_rollout_moves_consumers_and_front_door_and_comes_back_by_alarms(gradual: Walk) -> None:
    groups = gradual.of("AWS::CodeDeploy::DeploymentGroup")
    moved = {}
    for name, resource in gradual.template["Resources"].items():
        if resource["Type"] == "AWS::Lambda::Alias" and "UpdatePolicy" in resource:
            moved[plain(name)] = target(resource["UpdatePolicy"]["CodeDeployLambdaAliasUpdate"]["DeploymentGroupName"])
    assert set(moved) == {"WorkerPayingConsumerLive", "WorkerReadingConsumerLive", "FrontDoorLive"}
    assert set(moved.values()) == set(groups)
    alarms = gradual.of("AWS::CloudWatch::Alarm")
    for group in groups.values():
        assert group["DeploymentConfigName"] == "CodeDeployDefault.LambdaCanary10Percent5Minutes"
        assert group["AutoRollbackConfiguration"] == {
            "Enabled": True,
            "Events": ["DEPLOYMENT_FAILURE", "DEPLOYMENT_STOP_ON_REQUEST", "DEPLOYMENT_STOP_ON_ALARM"],
        }
        watching = group["AlarmConfiguration"]
        assert watching["Enabled"]
        assert watching["Alarms"]
        assert {target(alarm["Name"]) for alarm in watching["Alarms"]} <= set(alarms)


def taking_back(walk: Walk) -> set[str]:
    """The alarms by which some version is taken back."""
    groups = walk.of("AWS::CodeDeploy::DeploymentGroup").values()
    return {target(alarm["Name"]) for group in groups for alarm in group["AlarmConfiguration"]["Alarms"]}


def test_a_version_is_taken_back_by_what_it_can_be_to_blame_for(gradual: Walk) -> None:
    assert {plain(name) for name in taking_back(gradual)} == {
        *(f"Worker{worker}{name}" for worker in ("Paying", "Reading") for name in OF_A_WORKER),
        "FrontDoorRolloutAlarmsVersionErrors",
        "FrontDoorAlarmsServerErrors",
    }


def test_codedeploy_may_move_those_aliases_and_nothing_else(gradual: Walk) -> None:
    (role,) = [name for name in gradual.of("AWS::IAM::Role") if plain(name) == "RolloutRole"]
    groups = gradual.of("AWS::CodeDeploy::DeploymentGroup").values()
    assert {target(group["ServiceRoleArn"]) for group in groups} == {role}
    (statement,) = gradual.of("AWS::IAM::Role")[role]["AssumeRolePolicyDocument"]["Statement"]
    assert statement["Principal"] == {"Service": "codedeploy.amazonaws.com"}
    allowed: dict[str, set[str]] = {}
    for grant in gradual.grants(role):
        allowed.setdefault(plain(grant.resource), set()).add(grant.action)
    moving = {"lambda:GetAlias", "lambda:UpdateAlias", "lambda:GetProvisionedConcurrencyConfig"}
    assert allowed == {
        **{plain(name): {"cloudwatch:DescribeAlarms"} for name in taking_back(gradual)},
        "WorkerPayingConsumerFunction": moving,
        "WorkerReadingConsumerFunction": moving,
        "FrontDoorFunction": moving,
    }


def test_an_alias_is_moved_by_the_function_and_kept_ready_by_itself(gradual: Walk) -> None:
    """Lambda checks GetAlias and UpdateAlias on the function, unqualified (Lambda developer guide, resources and conditions)."""
    (policy,) = [each for name, each in gradual.of("AWS::IAM::Policy").items() if name.startswith("RolloutRole")]
    for statement in policy["PolicyDocument"]["Statement"]:
        actions = set(listed(statement["Action"]))
        if actions & {"lambda:UpdateAlias", "lambda:GetAlias"}:
            assert all(text(resource).endswith(".Arn>") for resource in listed(statement["Resource"]))
        if "lambda:GetProvisionedConcurrencyConfig" in actions:
            assert all(text(resource).endswith(".Arn>:live") for resource in listed(statement["Resource"]))


def test_the_permission_is_there_before_an_alias_is_moved_and_does_not_wait_for_it(gradual: Walk) -> None:
    (name,) = [each for each in gradual.of("AWS::IAM::Policy") if each.startswith("RolloutRole")]
    assert not references(gradual.of("AWS::IAM::Policy")[name]) & set(gradual.of("AWS::Lambda::Alias"))
    for each in gradual.of("AWS::CodeDeploy::DeploymentGroup"):
        assert name in listed(gradual.template["Resources"][each]["DependsOn"])


def test_a_version_is_watched_by_its_own_errors(gradual: Walk) -> None:
    alarms = {plain(name): alarm for name, alarm in gradual.of("AWS::CloudWatch::Alarm").items()}
    alarm = alarms["WorkerPayingConsumerRolloutAlarmsVersionErrors"]
    dimensions = {each["Name"]: each["Value"] for each in alarm["Dimensions"]}
    assert set(dimensions) == {"FunctionName", "Resource", "ExecutedVersion"}
    assert target(dimensions["ExecutedVersion"]) in gradual.of("AWS::Lambda::Version")
    assert text(dimensions["Resource"]).endswith(":live")
    assert (alarm["Threshold"], alarm["DatapointsToAlarm"]) == (0, 1)


def test_a_size_keeps_environments_ready(gradual: Walk) -> None:
    ready = {
        plain(name): alias["ProvisionedConcurrencyConfig"]["ProvisionedConcurrentExecutions"]
        for name, alias in gradual.of("AWS::Lambda::Alias").items()
        if "ProvisionedConcurrencyConfig" in alias
    }
    assert ready == {"WorkerPayingConsumerLive": 5, "FrontDoorLive": 2}
    (door,) = [
        f for f in gradual.of("AWS::Lambda::Function").values() if f["Handler"] == "functions.front_door.handler"
    ]
    assert door["MemorySize"] == 1024


def test_versions_begin_from_a_snapshot_where_the_stage_says_so(synth: Synth) -> None:
    walk = synth(Stage(name="dev", snap_start=True), (READING,))
    assert {f["SnapStart"]["ApplyOn"] for f in walk.of("AWS::Lambda::Function").values()} == {"PublishedVersions"}
    versions = [r for r in walk.template["Resources"].values() if r["Type"] == "AWS::Lambda::Version"]
    assert {version["DeletionPolicy"] for version in versions} == {"Delete"}  # each would be paid for
