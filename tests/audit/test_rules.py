"""The rules of our own, over the planted defects and over what is nearly one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from audit.gates import ours
from audit.policies import policies
from audit.template import Template
from audit.templates import write
from audit.tools import GateError
from tests.audit.planted import DEFECTS, planted

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.audit.planted import Defect

OURS = [defect for defect in DEFECTS if defect.gate == "ours"]
ACCOUNT_ALONE = {"StringEquals": {"aws:SourceAccount": "123456789012"}}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> set[tuple[str, str]]:
    """Rule and resource of everything that our rules say of the planted defects."""
    template = write("planted", planted(), tmp_path_factory.mktemp("rules"), retain=True)
    return {(finding.rule, finding.resource) for finding in ours([template])}


@pytest.mark.parametrize("defect", OURS, ids=lambda defect: defect.what)
def test_a_planted_defect_is_told(told: set[tuple[str, str]], defect: Defect) -> None:
    assert (defect.rule, defect.name) in told


def of(tmp_path: Path, *, retain: bool = False, **resources: Mapping[str, object]) -> set[tuple[str, str]]:
    template = write("some", {"Resources": resources}, tmp_path, retain=retain)
    return {(finding.rule, finding.resource) for finding in ours([template])}


@pytest.mark.parametrize("by", ["Consumer", "Live"])
def test_a_function_that_is_called_by_its_alias_is_looked_at_as_one_that_is_called_itself(
    tmp_path: Path, by: str
) -> None:
    def seen(hidden: int, called: str = by) -> set[tuple[str, str]]:
        queue = {"Type": "AWS::SQS::Queue", "Properties": {"VisibilityTimeout": hidden}}
        logging = {"LogGroup": {"Ref": "Logs"}, "LogFormat": "JSON", "ApplicationLogLevel": "INFO"}
        function = {"Type": "AWS::Lambda::Function", "Properties": {"Timeout": 10, "LoggingConfig": logging}}
        alias = {"Type": "AWS::Lambda::Alias", "Properties": {"FunctionName": {"Ref": "Consumer"}}}
        source = {"Fn::GetAtt": ["Source", "Arn"]}
        mapping = {"EventSourceArn": source, "FunctionName": {"Ref": called}, "MaximumBatchingWindowInSeconds": 5}
        return of(
            tmp_path,
            Source=queue,
            Consumer=function,
            Live=alias,
            Logs={"Type": "AWS::Logs::LogGroup"},
            Mapping={"Type": "AWS::Lambda::EventSourceMapping", "Properties": mapping},
        )

    assert seen(65) == set()
    assert seen(64) == {("TAHAN-VISIBILITY", "Source")}
    assert seen(65, "Nobody") == {("TAHAN-VISIBILITY", "Mapping")}


def test_data_may_go_with_a_stack_that_keeps_none(tmp_path: Path) -> None:
    table: dict[str, object] = {"Type": "AWS::DynamoDB::Table", "Properties": {}}
    assert of(tmp_path, Orders=table) == set()
    assert of(tmp_path, Orders=table, retain=True) == {("TAHAN-KEPT-DATA", "Orders")}


@pytest.mark.parametrize("missing", ["DeletionPolicy", "UpdateReplacePolicy", "DeletionProtectionEnabled"])
def test_data_is_kept_by_all_three(tmp_path: Path, missing: str) -> None:
    kept = {"DeletionPolicy": "Retain", "UpdateReplacePolicy": "Retain"}
    table: dict[str, object] = {
        "Type": "AWS::DynamoDB::Table",
        "Properties": {"DeletionProtectionEnabled": True},
        **kept,
    }
    assert of(tmp_path, Orders=table, retain=True) == set()
    if missing in table:
        del table[missing]
    else:
        table["Properties"] = {}
    assert of(tmp_path, Orders=table, retain=True) == {("TAHAN-KEPT-DATA", "Orders")}


def test_what_is_denied_to_everybody_is_no_star(tmp_path: Path) -> None:
    denied = {"Effect": "Deny", "Principal": {"AWS": "*"}, "Action": "s3:*", "Resource": "*"}
    policy = {"Type": "AWS::S3::BucketPolicy", "Properties": {"PolicyDocument": {"Statement": [denied]}}}
    assert of(tmp_path, Policy=policy) == set()


def test_a_condition_does_not_turn_everybody_into_somebody(tmp_path: Path) -> None:
    statement = {"Sid": "Ours", "Effect": "Allow", "Principal": "*", "Action": "sqs:SendMessage", "Resource": "a"}
    document = {"Statement": [{**statement, "Condition": ACCOUNT_ALONE}]}
    policy = {"Type": "AWS::SQS::QueuePolicy", "Properties": {"PolicyDocument": document}}
    assert of(tmp_path, Policy=policy) == {("TAHAN-STAR-PRINCIPAL[Ours]", "Policy")}


@pytest.mark.parametrize(
    "value", ["tahan-dev-FoundationTablesJobs", "https://provider.example", "arn:aws:sqs:a:1:b", "30"]
)
def test_names_and_addresses_are_no_secrets(tmp_path: Path, value: str) -> None:
    function = {
        "Type": "AWS::Lambda::Function",
        "Properties": {
            "Environment": {"Variables": {"WHERE": value}},
            "LoggingConfig": {"LogGroup": {"Ref": "Logs"}, "LogFormat": "JSON", "ApplicationLogLevel": "INFO"},
        },
    }
    assert of(tmp_path, Worker=function, Logs={"Type": "AWS::Logs::LogGroup"}) == set()


def test_a_policy_is_written_out_as_iam_will_see_it() -> None:
    statement = {
        "Effect": "Allow",
        "Action": "dynamodb:Query",
        "Resource": {"Fn::Join": ["", [{"Fn::GetAtt": ["Jobs", "Arn"]}, "/index/lanes"]]},
    }
    resources = {
        "Jobs": {"Type": "AWS::DynamoDB::Table"},
        "Given": {"Type": "AWS::IAM::Policy", "Properties": {"PolicyDocument": {"Statement": [statement]}}},
    }
    (given,) = policies(Template(resources, retain=False))
    assert given[0] == "Given"
    assert given[1]["Statement"][0]["Resource"] == "arn:aws:dynamodb:eu-west-1:123456789012:table/Jobs/index/lanes"


def test_a_policy_about_something_unknown_is_not_passed_over() -> None:
    statement = {"Effect": "Allow", "Action": "a:Do", "Resource": {"Fn::GetAtt": ["Thing", "Arn"]}}
    resources = {
        "Thing": {"Type": "AWS::New::Thing"},
        "Given": {"Type": "AWS::IAM::Policy", "Properties": {"PolicyDocument": {"Statement": [statement]}}},
    }
    with pytest.raises(GateError, match=r"refers to Arn of Thing, a AWS::New::Thing: extend ARNS"):
        list(policies(Template(resources, retain=False)))
