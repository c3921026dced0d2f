"""A network, a key and a topic that a user brings along: used, and neither made nor changed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from infra.stage.settings import ROOT, Stage
from tests.infra.declared import ORDERED, PAYING, READING

if TYPE_CHECKING:
    from tests.infra.conftest import Synth
    from tests.infra.walk import Walk

KEY = "arn:aws:kms:eu-central-1:111122223333:key/0a1b2c3d"
TOPIC = "arn:aws:sns:eu-central-1:111122223333:on-call"
ISOLATED = ["subnet-00000001", "subnet-00000002"]
EGRESS = ["subnet-00000003", "subnet-00000004"]
BROUGHT = {
    "name": "dev",
    "network": {
        "vpc": "vpc-0123abcd",
        "zones": ["eu-central-1a", "eu-central-1b"],
        "isolated": ISOLATED,
        "egress": EGRESS,
    },
    "key_arn": KEY,
    "alarm_topic_arn": TOPIC,
}


@pytest.fixture(scope="module")
def brought(synth: Synth) -> Walk:
    return synth(Stage.model_validate(BROUGHT), (PAYING, READING, ORDERED))


def test_nothing_of_it_is_made(brought: Walk) -> None:
    made = {resource["Type"] for resource in brought.template["Resources"].values()}
    networking = {"AWS::EC2::SecurityGroup", "AWS::EC2::SecurityGroupIngress"}
    assert {kind for kind in made if kind.startswith("AWS::EC2::")} == networking
    assert not made & {"AWS::KMS::Key", "AWS::SNS::Topic", "AWS::SNS::TopicPolicy"}


def test_functions_and_cache_live_in_its_subnets(brought: Walk) -> None:
    functions = brought.of("AWS::Lambda::Function").values()
    placed = {f["Handler"]: f["VpcConfig"]["SubnetIds"] for f in functions if "VpcConfig" in f}
    assert placed == {
        "functions.paying.handler": EGRESS,
        "functions.reading.handler": ISOLATED,
        "functions.in_order.handler": ISOLATED,
        "functions.lookout.handler": EGRESS,
    }
    (cache,) = brought.of("AWS::ElastiCache::ServerlessCache").values()
    assert cache["SubnetIds"] == ISOLATED
    groups = brought.of("AWS::EC2::SecurityGroup").values()
    assert {group["VpcId"] for group in groups} == {"vpc-0123abcd"}


def test_everything_at_rest_is_encrypted_by_its_key(brought: Walk) -> None:
    assert {queue["KmsMasterKeyId"] for queue in brought.of("AWS::SQS::Queue").values()} == {KEY}
    tables = brought.of("AWS::DynamoDB::Table").values()
    assert {table["SSESpecification"]["KMSMasterKeyId"] for table in tables} == {KEY}
    assert {group["KmsKeyId"] for group in brought.of("AWS::Logs::LogGroup").values()} == {KEY}
    (cache,) = brought.of("AWS::ElastiCache::ServerlessCache").values()
    assert cache["KmsKeyId"] == KEY


def test_every_alarm_speaks_to_its_topic(brought: Walk) -> None:
    alarms = brought.of("AWS::CloudWatch::Alarm")
    assert alarms
    assert {action for alarm in alarms.values() for action in alarm["AlarmActions"]} == {TOPIC}


def test_the_policy_that_a_key_needs_is_the_one_that_the_page_shows(declared: Walk) -> None:
    (key,) = declared.of("AWS::KMS::Key")
    statements = [s for s in declared.of("AWS::KMS::Key")[key]["KeyPolicy"]["Statement"] if "Sid" in s]
    page = (ROOT / "docs" / "how-to" / "bring-your-own.md").read_text(encoding="utf-8")
    shown = json.loads(page.partition("<!-- key policy -->\n```json\n")[2].partition("```")[0])
    assert shown == [spelled(statement) for statement in statements]


def spelled(value: Any) -> Any:
    """A part of the template as people would write it for their account and region."""
    match value:
        case {"Ref": str() as name}:
            return f"<{name.removeprefix('AWS::')}>"
        case {"Fn::Join": ["", list() as parts]}:
            return "".join(spelled(part) for part in parts)
        case dict():
            return {name: spelled(inner) for name, inner in value.items()}
        case list():
            return [spelled(inner) for inner in value]
        case _:
            return value
