"""Where functions run and what they reach: zones, egress, endpoints, and the cache that only they may use."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from infra.stage.settings import Stage
from tests.infra.declared import PAYING, READING, WORKERS
from tests.infra.walk import plain, target, text

if TYPE_CHECKING:
    from tests.infra.conftest import Synth
    from tests.infra.walk import Walk


def test_a_worker_with_an_outside_dependency_gets_egress_and_the_others_do_not(declared: Walk) -> None:
    places = {
        plain(name): {plain(target(subnet)) for subnet in properties["VpcConfig"]["SubnetIds"]}
        for name, properties in declared.of("AWS::Lambda::Function").items()
        if "VpcConfig" in properties
    }
    assert places.pop("WorkerPayingConsumerFunction") == _subnets("Egress")
    assert places.pop("LookoutFunction") == _subnets("Egress")  # Lambda's API has no endpoint here
    assert set(places) >= {"FrontDoorFunction"}  # it reaches the cache, and DynamoDB by its endpoint
    assert len(places) == len(WORKERS) + 1
    assert set(map(frozenset, places.values())) == {frozenset(_subnets("Isolated"))}
    assert len(declared.of("AWS::EC2::NatGateway")) == 1


def _subnets(kind: str) -> set[str]:
    return {f"FoundationNetworkVpc{kind}Subnet{number}Subnet" for number in (1, 2)}


@pytest.mark.parametrize("zones", [2, 3])
def test_the_network_lies_in_as_many_zones_as_the_stage_says(synth: Synth, zones: int) -> None:
    walk = synth(Stage(name="zoned", availability_zones=zones, nat_gateways=zones), [PAYING])
    by_zone = Counter(json.dumps(subnet["AvailabilityZone"]) for subnet in walk.of("AWS::EC2::Subnet").values())
    assert by_zone == {json.dumps({"Fn::Select": [i, {"Fn::GetAZs": ""}]}): 3 for i in range(zones)}
    assert len(walk.of("AWS::EC2::NatGateway")) == zones
    (cache,) = walk.of("AWS::ElastiCache::ServerlessCache").values()
    assert len(cache["SubnetIds"]) == zones
    for function in walk.of("AWS::Lambda::Function").values():
        assert len(function.get("VpcConfig", {"SubnetIds": cache["SubnetIds"]})["SubnetIds"]) == zones


def test_a_cache_that_cannot_change_in_place_gets_another_name(synth: Synth) -> None:
    stage = Stage(name="a" * 20)
    names = [
        cache["ServerlessCacheName"]
        for changed in ({}, {"customer_key": False}, {"availability_zones": 3}, {"log_retention_days": 7})
        for cache in synth(stage.model_copy(update=changed), [READING]).of("AWS::ElastiCache::ServerlessCache").values()
    ]
    assert len(set(names)) == 3
    assert names[0] == names[3]
    for name in names:
        assert re.fullmatch(r"tahan-a{20}-[0-9a-f]{8}", name)
        assert len(name) <= 40


def test_the_cache_admits_the_functions_and_nobody_else(walk: Walk) -> None:
    (cache,) = walk.of("AWS::ElastiCache::ServerlessCache").values()
    assert (cache["Engine"], cache["MajorEngineVersion"]) == ("valkey", "8")
    (group,) = map(target, cache["SecurityGroupIds"])
    assert "SecurityGroupIngress" not in walk.of("AWS::EC2::SecurityGroup")[group]
    rules = [r for r in walk.of("AWS::EC2::SecurityGroupIngress").values() if target(r["GroupId"]) == group]
    assert sorted((r["FromPort"], r["ToPort"]) for r in rules) == [(6379, 6379), (6380, 6380)]
    functions = {
        target(name)
        for properties in walk.of("AWS::Lambda::Function").values()
        for name in properties.get("VpcConfig", {}).get("SecurityGroupIds", [])
    }
    assert {target(r["SourceSecurityGroupId"]) for r in rules} == functions


def test_the_cache_lies_in_isolated_subnets(walk: Walk) -> None:
    (cache,) = walk.of("AWS::ElastiCache::ServerlessCache").values()
    assert {plain(target(subnet)) for subnet in cache["SubnetIds"]} == _subnets("Isolated")


def test_functions_reach_sqs_dynamodb_and_s3_without_the_internet(walk: Walk) -> None:
    services = [text(endpoint["ServiceName"]) for endpoint in walk.of("AWS::EC2::VPCEndpoint").values()]
    assert sorted(service.rpartition(".")[2] for service in services) == ["dynamodb", "s3", "sqs"]
