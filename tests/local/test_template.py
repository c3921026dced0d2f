"""What the local stack takes out of the template, and that it takes out nothing else."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest

from local.processes.environment import ACCOUNT, REGION
from local.stack.adapted import Cache, TemplateError, adapt_assembly, adapt_template

if TYPE_CHECKING:
    from pathlib import Path

CACHE = Cache("127.0.0.1", 7001)
TEMPLATE: dict[str, Any] = {
    "Parameters": {"EndpointPaymentProvider": {"Type": "String"}},
    "Conditions": {"Always": {"Fn::Equals": ["a", "a"]}},
    "Resources": {
        "Vpc": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.0.0.0/16"}},
        "Subnet": {"Type": "AWS::EC2::Subnet", "Properties": {"VpcId": {"Ref": "Vpc"}}},
        "Group": {"Type": "AWS::EC2::SecurityGroup", "Properties": {"VpcId": {"Ref": "Vpc"}}},
        "Restrict": {"Type": "Custom::VpcRestrictDefaultSG", "Properties": {"ServiceToken": "x"}},
        "Cache": {
            "Type": "AWS::ElastiCache::ServerlessCache",
            "Properties": {"SubnetIds": [{"Ref": "Subnet"}]},
            "DependsOn": "Group",
        },
        "User": {"Type": "AWS::ElastiCache::User", "Properties": {"UserName": "app"}},
        "Users": {"Type": "AWS::ElastiCache::UserGroup", "Properties": {"UserIds": [{"Ref": "User"}]}},
        "Arrivals": {"Type": "AWS::CloudWatch::Alarm", "Properties": {"Metrics": [{"Expression": "DIFF(m)"}]}},
        "Both": {"Type": "AWS::CloudWatch::CompositeAlarm", "Properties": {"AlarmRule": {"Ref": "Arrivals"}}},
        "Age": {"Type": "AWS::CloudWatch::Alarm", "Properties": {"MetricName": "ApproximateAgeOfOldestMessage"}},
        "Dashboard": {
            "Type": "AWS::CloudWatch::Dashboard",
            "Properties": {"DashboardBody": {"Fn::Join": ["", [{"Fn::GetAtt": ["Arrivals", "Arn"]}]]}},
        },
        "Queue": {"Type": "AWS::SQS::Queue", "Properties": {"VisibilityTimeout": 24}, "DeletionPolicy": "Retain"},
        "Policy": {
            "Type": "AWS::IAM::Policy",
            "Properties": {
                "PolicyDocument": {
                    "Statement": [
                        {
                            "Action": "elasticache:Connect",
                            "Resource": [{"Fn::GetAtt": ["Cache", "ARN"]}, {"Fn::GetAtt": ["User", "Arn"]}],
                        }
                    ]
                }
            },
        },
        "Function": {
            "Type": "AWS::Lambda::Function",
            "Properties": {
                "Timeout": 4,
                "VpcConfig": {
                    "SubnetIds": [{"Ref": "Subnet"}],
                    "SecurityGroupIds": [{"Fn::GetAtt": ["Group", "GroupId"]}],
                },
                "Environment": {
                    "Variables": {
                        "TAHAN_CACHE_HOST": {"Fn::GetAtt": ["Cache", "Endpoint.Address"]},
                        "TAHAN_CACHE_PORT": {"Fn::GetAtt": ["Cache", "Endpoint.Port"]},
                        "TAHAN_CACHE_TLS": "true",
                        "TAHAN_CACHE_CLUSTER": "true",
                        "TAHAN_CACHE_USER": {"Ref": "User"},
                        "TAHAN_CACHE_NAME": "tahan-dev",
                        "TAHAN_QUEUE_PAYMENTS": {"Ref": "Queue"},
                    }
                },
            },
            "DependsOn": ["Policy", "Subnet"],
        },
        "Plain": {"Type": "AWS::Lambda::Function", "Properties": {"Timeout": 9}},
    },
    "Outputs": {
        "QueuePayments": {"Value": {"Ref": "Queue"}},
        "CacheAddress": {"Value": {"Fn::GetAtt": ["Cache", "Endpoint.Address"]}},
        "VpcName": {"Value": {"Fn::Sub": "the-${Vpc}"}},
    },
}


def adapted(template: dict[str, Any] | None = None) -> dict[str, Any]:
    return adapt_template(copy.deepcopy(template or TEMPLATE), CACHE)


def test_networking_the_managed_cache_and_metric_math_go_and_all_else_stays() -> None:
    assert set(adapted()["Resources"]) == {"Age", "Dashboard", "Queue", "Policy", "Function", "Plain"}


def test_what_touches_neither_is_left_as_synthesised() -> None:
    result = adapted()

    assert result["Resources"]["Queue"] == TEMPLATE["Resources"]["Queue"]
    assert result["Resources"]["Plain"] == TEMPLATE["Resources"]["Plain"]
    assert result["Parameters"] == TEMPLATE["Parameters"]
    assert result["Conditions"] == TEMPLATE["Conditions"]


def test_a_function_leaves_the_network_and_finds_the_local_valkey() -> None:
    function = adapted()["Resources"]["Function"]

    assert function["DependsOn"] == ["Policy"]
    assert function["Properties"] == {
        "Timeout": 4,
        "Environment": {
            "Variables": {
                "TAHAN_CACHE_HOST": "127.0.0.1",
                "TAHAN_CACHE_PORT": "7001",
                "TAHAN_CACHE_TLS": "false",
                "TAHAN_CACHE_CLUSTER": "false",
                "TAHAN_CACHE_USER": "",
                "TAHAN_CACHE_NAME": "",
                "TAHAN_QUEUE_PAYMENTS": {"Ref": "Queue"},
            }
        },
    }


def test_permissions_on_the_cache_name_one_that_does_not_exist() -> None:
    statement = adapted()["Resources"]["Policy"]["Properties"]["PolicyDocument"]["Statement"][0]

    assert statement["Resource"] == [f"arn:aws:cache:{REGION}:{ACCOUNT}:{name}" for name in ("Cache", "User")]


def test_a_dashboard_may_name_an_alarm_that_went() -> None:
    body = adapted()["Resources"]["Dashboard"]["Properties"]["DashboardBody"]

    assert body == {"Fn::Join": ["", [f"arn:aws:alarm:{REGION}:{ACCOUNT}:Arrivals"]]}


def test_outputs_about_what_went_go_with_it() -> None:
    assert set(adapted()["Outputs"]) == {"QueuePayments"}


@pytest.mark.parametrize(
    "value", [{"Ref": "Subnet"}, {"Fn::GetAtt": ["Group", "GroupId"]}, {"Fn::Sub": "${Vpc.CidrBlock}"}]
)
def test_anything_else_that_needs_the_network_is_refused_by_name(value: dict[str, Any]) -> None:
    template = copy.deepcopy(TEMPLATE)
    template["Resources"]["Bucket"] = {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": value}}

    with pytest.raises(TemplateError, match="Bucket uses"):
        adapted(template)


def test_the_assembly_itself_is_not_touched(tmp_path: Path) -> None:
    assembly = tmp_path / "cdk.out"
    assembly.mkdir()
    manifest = {
        "artifacts": {
            "tahan": {"type": "aws:cloudformation:stack", "properties": {"templateFile": "tahan.template.json"}},
            "tree": {"type": "cdk:tree"},
        }
    }
    (assembly / "manifest.json").write_text(json.dumps(manifest))
    (assembly / "tahan.template.json").write_text(json.dumps(TEMPLATE))

    copied = adapt_assembly(assembly, tmp_path / "copy", CACHE)

    assert json.loads((assembly / "tahan.template.json").read_text()) == TEMPLATE
    assert json.loads((copied / "tahan.template.json").read_text()) == adapted()
