"""Who asked for which file, and who spoke to whom, is written down in one bucket that AWS alone writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from infra.stage.settings import Stage
from tests.infra.declared import READING
from tests.infra.walk import listed, plain, target, text

if TYPE_CHECKING:
    from tests.infra.conftest import Synth
    from tests.infra.walk import Json, Walk

OUR_ACCOUNT = {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}


def log_bucket(walk: Walk) -> str:
    (name,) = [name for name in walk.of("AWS::S3::Bucket") if plain(name) == "FoundationAccessLogs"]
    return name


def writers(walk: Walk, service: str) -> list[Json]:
    """What a service may do with the bucket of logs."""
    bucket = log_bucket(walk)
    return [
        statement
        for policy in walk.of("AWS::S3::BucketPolicy").values()
        if target(policy["Bucket"]) == bucket
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Principal"].get("Service") == service
    ]


def test_requests_for_files_are_logged_each_buckets_under_its_own_prefix(walk: Walk) -> None:
    logs = log_bucket(walk)
    granted = {
        text(statement["Resource"]).partition(">/")[2]: target(statement["Condition"]["ArnLike"]["aws:SourceArn"])
        for statement in writers(walk, "logging.s3.amazonaws.com")
        if statement["Condition"]["StringEquals"] == OUR_ACCOUNT
    }
    for name, bucket in walk.of("AWS::S3::Bucket").items():
        if name != logs:
            logging = bucket["LoggingConfiguration"]
            assert target(logging["DestinationBucketName"]) == logs
            assert granted.pop(f"{logging['LogFilePrefix']}*") == name
    assert not granted


def test_s3_can_write_into_the_bucket_of_logs(walk: Walk) -> None:
    bucket = walk.of("AWS::S3::Bucket")[log_bucket(walk)]
    (rule,) = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert rule["ServerSideEncryptionByDefault"] == {"SSEAlgorithm": "AES256"}
    assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}


@pytest.mark.parametrize(("days", "retain"), [(30, False), (365, True)])
def test_access_logs_are_forgotten_and_kept_as_the_stage_says(synth: Synth, days: int, retain: bool) -> None:
    walk = synth(Stage(name="dev", log_retention_days=days, retain=retain), [READING])
    name = log_bucket(walk)
    (forget,) = walk.of("AWS::S3::Bucket")[name]["LifecycleConfiguration"]["Rules"]
    assert (forget["Status"], forget["ExpirationInDays"]) == ("Enabled", days)
    assert walk.template["Resources"][name]["DeletionPolicy"] == ("Retain" if retain else "Delete")


def test_no_function_reaches_the_bucket_of_logs(walk: Walk) -> None:
    bucket = log_bucket(walk)
    assert not [g for role in walk.of("AWS::IAM::Role") for g in walk.grants(role) if g.resource == bucket]


def test_all_traffic_of_the_network_is_logged(walk: Walk) -> None:
    (vpc,) = walk.of("AWS::EC2::VPC")
    (flow,) = walk.of("AWS::EC2::FlowLog").values()
    assert (target(flow["ResourceId"]), flow["ResourceType"], flow["TrafficType"]) == (vpc, "VPC", "ALL")
    assert text(flow["LogDestination"]) == f"<{log_bucket(walk)}.Arn>/network/"
    put = [s for s in writers(walk, "delivery.logs.amazonaws.com") if "s3:PutObject" in listed(s["Action"])]
    assert [text(s["Resource"]).partition(">/")[2] for s in put] == ["network/AWSLogs/<AWS::AccountId>/*"]
    for statement in writers(walk, "delivery.logs.amazonaws.com"):
        assert statement["Condition"]["StringEquals"].items() >= OUR_ACCOUNT.items()
