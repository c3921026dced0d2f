"""A stage's settings: read, and refused where they contradict each other."""

from __future__ import annotations

import platform
import sys
from datetime import timedelta

import pytest

from infra.stage import settings as settings_module
from infra.stage.choices import ARCHITECTURES
from infra.stage.settings import Stage, load_stage, read_context
from shared.errors import DeclarationError, SettingsError
from tests.infra.declared import PAYING, READING

NETWORK = {
    "vpc": "vpc-0123abcd",
    "zones": ["eu-central-1a", "eu-central-1b"],
    "isolated": ["subnet-00000001", "subnet-00000002"],
}
KEY = "arn:aws:kms:eu-central-1:111122223333:key/0a1b2c3d"
TOPIC = "arn:aws:sns:eu-central-1:111122223333:on-call"
CANARY = "canary-10-percent-5-minutes"
READY = {"paying": {"provisioned_concurrency": 2}}


def test_every_stage_of_cdk_json_can_be_read() -> None:
    stages = read_context()["stages"]
    assert isinstance(stages, dict)
    assert {name: load_stage(name).name for name in stages} == {
        name: name for name in ("dev", "staging", "prod", "local")
    }


def test_production_keeps_its_data() -> None:
    assert load_stage("prod").retain
    assert not load_stage("dev").retain


def test_the_local_stage_runs_on_this_host_and_faster() -> None:
    stage = load_stage("local")
    assert stage.processor == ARCHITECTURES[platform.machine().lower()]
    assert stage.python_version == f"{sys.version_info.major}.{sys.version_info.minor}"
    worker = stage.at(PAYING)
    assert worker.max_concurrency == 3
    assert worker.jobs[0].timeout == timedelta(seconds=3)


def test_a_size_that_a_stage_gives_comes_before_what_is_declared_and_what_holds_for_all() -> None:
    stage = Stage.model_validate({"name": "dev", "max_concurrency": 5, "sizes": {"paying": {"memory": 1024}}})
    assert (stage.at(PAYING).memory, stage.at(PAYING).max_concurrency) == (1024, 5)
    assert (stage.at(READING).memory, stage.at(READING).max_concurrency) == (READING.memory, 5)
    sized = Stage.model_validate({"name": "dev", "max_concurrency": 5, "sizes": {"paying": {"max_concurrency": 7}}})
    assert sized.at(PAYING).max_concurrency == 7


def test_on_aws_a_worker_runs_as_it_is_declared() -> None:
    assert load_stage("dev").at(PAYING) is PAYING


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"architecture": "host"}, ["architecture='host'", "python='3.13'", "set both to 'host' or neither"]),
        ({"python": "host"}, ["architecture='arm64'", "python='host'"]),
        ({"retain": True, "pace": 0.5}, ["retain=true", "pace=1", "or retain=false"]),
        ({"retain": True, "customer_key": False}, ["customer_key=true"]),
        ({"cache_tls": False}, ["cache_tls=False", "speaks TLS and the cluster protocol", "leave both out"]),
        ({"cache_cluster": False}, ["cache_cluster=False", "leave both out"]),
        ({"retain": True, "cache_tls": False}, ["cache_tls=False"]),
        ({"cache_iam": False}, ["cache_iam=False", "whoever reaches the cache", "leave it out"]),
        ({"nat_gateways": 3}, ["nat_gateways=3", "availability_zones=2", "lower the first or raise the second"]),
        ({"log_retention_days": 31}, ["log_retention_days=31", "choose one of"]),
        ({"endpoints": {"bank": "bank.example"}}, ["'bank'", "https://api.example.com/v1"]),
        ({"endpoints": {"bank": "http://bank.example"}}, ["'bank'", "use https"]),
        ({"network": NETWORK, "nat_gateways": 1}, ["network='vpc-0123abcd'", "nat_gateways", "leave out"]),
        ({"network": NETWORK, "availability_zones": 2}, ["and availability_zones", "leave out"]),
        (
            {"network": {**NETWORK, "isolated": ["subnet-00000001"]}},
            ["isolated has 1 subnets for 2 zones", "each zone"],
        ),
        ({"network": {**NETWORK, "egress": ["subnet-00000003"]}}, ["egress has 1 subnets for 2 zones"]),
        ({"network": {**NETWORK, "egress": NETWORK["isolated"]}}, ["a subnet is named twice"]),
        ({"network": {**NETWORK, "zones": ["eu-central-1a"] * 2}}, ["names one twice"]),
        ({"network": {**NETWORK, "vpc": "main"}}, ["vpc"]),
        ({"network": {**NETWORK, "isolated": ["subnet-00000001", "private-b"]}}, ["isolated.1", "subnet-"]),
        ({"network": {**NETWORK, "egress": ["", "subnet-00000004"]}}, ["egress.0", "subnet-"]),
        ({"key_arn": KEY, "customer_key": False}, ["key_arn=", "customer_key=false", "leave one of them out"]),
        ({"key_arn": "alias/tahan"}, ["key_arn"]),
        (
            {"alarm_topic_arn": TOPIC, "alarm_emails": ["a@example.com"]},
            ["its own subscribers", "leave one of them out"],
        ),
        ({"alarm_topic_arn": f"{TOPIC}.fifo"}, ["alarm_topic_arn"]),
        ({"alarm_emails": ["on-call"]}, ["alarm_emails.0"]),
        (
            {"architecture": "host", "python": "host", "rollout": CANARY},
            ["this host has no CodeDeploy", "leave it out"],
        ),
        ({"rollout": "canary"}, ["rollout", "all-at-once"]),
        ({"architecture": "host", "python": "host", "snap_start": True}, ["takes no snapshots"]),
        ({"snap_start": True, "python": "3.11"}, ["python='3.11'", "from 3.12 on"]),
        ({"alarms": {"dead_letter_decision": "P20D"}}, ["may be lost after 10 days", "an hour or more to decide"]),
        ({"alarms": {"dead_letter_warning": "P9D"}}, ["comes after the page", "lower it"]),
        ({"alarms": {"retry_rate": 7}}, ["alarms.retry_rate", "not permitted"]),
        ({"snap_start": True, "sizes": READY}, ["snap_start=true", "of 'paying'", "one of them"]),
        ({"sizes": {"paying": {"provisioned_concurrency": 3, "reserved_concurrency": 2}}}, ["=3 is over", "=2"]),
        ({"sizes": {"front-door": {"memory": 512}}}, ["without identity there is no front door"]),
        ({"sizes": {"front-door": {"max_concurrency": 3}}}, ["which the front door has not"]),
        ({"sizes": {"paying": {"memory": 64}}}, ["sizes.paying.memory"]),
        ({"prefix": "Tahan"}, ["prefix"]),
        ({"pace": 0}, ["pace"]),
        ({"max_concurrency": 1}, ["max_concurrency"]),
        ({"nat_gatways": 1}, ["nat_gatways", "not permitted"]),
        ({"python": "2.7"}, ["python"]),
    ],
)
def test_a_contradiction_is_refused_with_its_repair(settings: dict[str, object], words: list[str]) -> None:
    with pytest.raises(DeclarationError) as refused:
        load_stage("odd", {"odd": settings})
    message = str(refused.value)
    assert message.startswith("stage 'odd'")
    assert [word for word in words if word not in message] == []


@pytest.mark.parametrize("name", ["x-", "x--y", "-x", "X", "x" * 21])
def test_a_name_that_makes_no_name_of_a_stack_is_refused(name: str) -> None:
    with pytest.raises(DeclarationError, match="name"):
        load_stage(name, {name: {}})


@pytest.mark.parametrize("settings", [None, [], "x", {"name": "other"}])
def test_settings_that_are_no_object_are_refused(settings: object) -> None:
    with pytest.raises(SettingsError, match=r"^stage 'odd' in cdk.json is .*: give an object of settings"):
        load_stage("odd", {"odd": settings})


def test_without_any_stages_the_key_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings_module, "read_context", dict)
    with pytest.raises(SettingsError, match="the context key 'stages' must be an object"):
        load_stage("dev")


def test_an_unknown_stage_is_refused_with_those_there_are() -> None:
    with pytest.raises(DeclarationError, match=r"choose one of \['dev', 'local', 'prod', 'staging'\]"):
        load_stage("stage")


def test_plain_http_is_for_this_host_only() -> None:
    stage = Stage(name="local", architecture="host", python="host", endpoints={"bank": "http://127.0.0.1:8090"})
    assert stage.endpoints["bank"].startswith("http://")
