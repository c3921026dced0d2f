"""CDK-01: whoever sends to or reads from something encrypted may use its key."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from infra.stage.settings import Stage
from tests.infra.declared import READING
from tests.infra.walk import listed, target, text

if TYPE_CHECKING:
    from tests.infra.conftest import Synth
    from tests.infra.walk import Walk

KEY_OF = {
    "AWS::SQS::Queue": ("KmsMasterKeyId",),
    "AWS::SNS::Topic": ("KmsMasterKeyId",),
    "AWS::Logs::LogGroup": ("KmsKeyId",),
    "AWS::DynamoDB::Table": ("SSESpecification", "KMSMasterKeyId"),
    "AWS::ElastiCache::ServerlessCache": ("KmsKeyId",),
}
USE_THE_KEY = {"kms:Decrypt", "kms:GenerateDataKey"}


def keys(walk: Walk, kind: str) -> dict[str, str]:
    """The customer key of each resource of a type; an alias of AWS's own key is refused by `target`."""
    found = {}
    for name, properties in walk.of(kind).items():
        value = properties
        for part in KEY_OF[kind]:
            value = value[part]
        found[name] = target(value)
        assert found[name] in walk.of("AWS::KMS::Key")
    return found


@pytest.mark.parametrize("kind", KEY_OF)
def test_cdk_01_everything_at_rest_is_under_the_customer_key(walk: Walk, kind: str) -> None:
    assert keys(walk, kind)


@pytest.mark.parametrize(("kind", "service"), [("AWS::SQS::Queue", "sqs"), ("AWS::DynamoDB::Table", "dynamodb")])
def test_cdk_01_every_role_that_uses_a_queue_or_table_may_use_its_key(walk: Walk, kind: str, service: str) -> None:
    key_of = keys(walk, kind)
    users = 0
    for role in walk.of("AWS::IAM::Role"):
        grants = walk.grants(role)
        for resource in {grant.resource for grant in grants} & set(key_of):
            users += 1
            through_service = {
                grant.action
                for grant in grants
                if grant.resource == key_of[resource]
                and f"{service}.<AWS::Region>.<AWS::URLSuffix>"
                in [text(value) for value in listed(grant.conditions["StringEquals"]["kms:ViaService"])]
            }
            assert through_service >= USE_THE_KEY, (role, resource)
    assert users >= len(key_of)


def test_cdk_01_every_queue_is_used_by_some_role(walk: Walk) -> None:
    used = {grant.resource for role in walk.of("AWS::IAM::Role") for grant in walk.grants(role)}
    assert set(walk.of("AWS::SQS::Queue")) <= used


def test_cdk_01_services_that_publish_to_an_encrypted_topic_may_use_its_key(walk: Walk) -> None:
    key_of = keys(walk, "AWS::SNS::Topic")
    publishers = [
        (text(statement["Principal"]["Service"]), target(topic))
        for policy in walk.of("AWS::SNS::TopicPolicy").values()
        for topic in policy["Topics"]
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Effect"] == "Allow"
    ]
    assert publishers
    for service, topic in publishers:
        (statement,) = [s for s in walk.key_statements(key_of[topic]) if s[0] == service]
        assert statement[1] == {"kms:Decrypt", "kms:GenerateDataKey*"}
        assert statement[2] == {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}


def test_cdk_01_every_alarm_speaks_through_a_topic_that_admits_it(walk: Walk) -> None:
    topics = {
        target(action)
        for kind in ("Alarm", "CompositeAlarm")
        for alarm in walk.of(f"AWS::CloudWatch::{kind}").values()
        for action in alarm.get("AlarmActions", [])
    }
    assert topics == set(walk.of("AWS::SNS::Topic"))


def test_cdk_01_the_key_serves_the_log_groups_of_this_account_only(walk: Walk) -> None:
    for key in set(keys(walk, "AWS::Logs::LogGroup").values()):
        (statement,) = [s for s in walk.key_statements(key) if s[0] == "logs.<AWS::Region>.<AWS::URLSuffix>"]
        context = statement[2]["ArnLike"]["kms:EncryptionContext:aws:logs:arn"]
        assert text(context).endswith(":logs:<AWS::Region>:<AWS::AccountId>:log-group:*")


def test_cdk_01_who_makes_the_cache_may_grant_it_the_key_and_nothing_by_themselves(walk: Walk) -> None:
    for key in set(keys(walk, "AWS::ElastiCache::ServerlessCache").values()):
        (statement,) = [
            s for s in walk.of("AWS::KMS::Key")[key]["KeyPolicy"]["Statement"] if s.get("Sid") == "TheCache"
        ]
        assert {"kms:CreateGrant", "kms:DescribeKey"} <= set(statement["Action"])
        (condition,) = statement["Condition"].values()
        assert {name: text(value) for name, value in condition.items()} == {
            "kms:CallerAccount": "<AWS::AccountId>",
            "kms:ViaService": "elasticache.<AWS::Region>.<AWS::URLSuffix>",
        }


def test_no_name_of_a_partition_is_written_out(walk: Walk) -> None:
    policies = json.dumps([walk.of(kind) for kind in ("AWS::KMS::Key", "AWS::IAM::Policy", "AWS::SQS::QueuePolicy")])
    assert ".amazonaws.com" not in policies.replace("cloudwatch.amazonaws.com", "")
    assert "arn:aws:" not in policies


def test_the_key_rotates(walk: Walk) -> None:
    for key in walk.of("AWS::KMS::Key").values():
        assert key["EnableKeyRotation"] is True


def test_without_a_customer_key_queues_are_encrypted_by_sqs(synth: Synth) -> None:
    walk = synth(Stage(name="bare", customer_key=False, nat_gateways=0), [READING])
    assert not walk.of("AWS::KMS::Key")
    (cache,) = walk.of("AWS::ElastiCache::ServerlessCache").values()
    assert "KmsKeyId" not in cache
    for queue in walk.of("AWS::SQS::Queue").values():
        assert queue["SqsManagedSseEnabled"] is True
    for role in walk.of("AWS::IAM::Role"):
        assert not [grant for grant in walk.grants(role) if grant.action.startswith("kms:")]
    assert not walk.of("AWS::EC2::NatGateway")
    assert not walk.of("AWS::EC2::InternetGateway")
