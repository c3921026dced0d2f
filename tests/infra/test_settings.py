"""A stage's settings: read, and refused where they contradict each other."""

from __future__ import annotations

import platform
import sys
from datetime import timedelta

import pytest

from infra import settings as settings_module
from infra.settings import ARCHITECTURES, Stage, load_stage, read_context
from shared.errors import DeclarationError, SettingsError
from tests.infra.declared import PAYING


def test_every_stage_of_cdk_json_can_be_read() -> None:
    stages = read_context()["stages"]
    assert isinstance(stages, dict)
    assert {name: load_stage(name).name for name in stages} == {name: name for name in ("dev", "prod", "local")}


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
    with pytest.raises(DeclarationError, match=r"choose one of \['dev', 'local', 'prod'\]"):
        load_stage("staging")


def test_plain_http_is_for_this_host_only() -> None:
    stage = Stage(name="local", architecture="host", python="host", endpoints={"bank": "http://127.0.0.1:8090"})
    assert stage.endpoints["bank"].startswith("http://")
