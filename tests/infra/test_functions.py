"""Functions of every template: what they run on, are told, and can reach."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from functions import inventory, notifications
from functions.registry import WORKERS as REGISTERED
from infra.packaging.binaries import check_binaries, compiled_files
from infra.stage.settings import Stage, load_stage
from shared.settings import PREFIX, Settings
from tests.infra.declared import PAYING, SLOW, WORKERS
from tests.infra.walk import plain, target, text

if TYPE_CHECKING:
    from pathlib import Path

    from tests.infra.conftest import Synth
    from tests.infra.walk import Json, Walk


def function(walk: Walk, name: str) -> Json:
    (found,) = [f for n, f in walk.of("AWS::Lambda::Function").items() if plain(n) == name]
    return found


def environ(properties: Json) -> dict[str, str]:
    return {name: text(value) for name, value in properties["Environment"]["Variables"].items()}


def test_there_are_no_functions_but_consumers_relay_counter_sweeper_lookout_and_front_door(
    walk: Walk,
) -> None:
    assert len(walk.of("AWS::Lambda::Function")) == len(walk.mappings("SQS")) + 4 + len(
        walk.of("AWS::ApiGatewayV2::Api")
    )
    assert not [
        r for r in walk.template["Resources"].values() if r["Type"].startswith(("Custom::", "AWS::CloudFormation"))
    ]


def test_every_function_is_traced_and_logs_json_to_a_group_that_forgets(walk: Walk) -> None:
    groups = walk.of("AWS::Logs::LogGroup")
    seen = set()
    for properties in walk.of("AWS::Lambda::Function").values():
        assert properties["TracingConfig"] == {"Mode": "Active"}
        assert properties["LoggingConfig"]["LogFormat"] == "JSON"
        seen.add(target(properties["LoggingConfig"]["LogGroup"]))
    access = {
        target(stage["AccessLogSettings"]["DestinationArn"]) for stage in walk.of("AWS::ApiGatewayV2::Stage").values()
    }
    audit = target(walk.template["Outputs"]["AuditLog"]["Value"])
    assert seen | access | {audit} == set(groups)
    assert {group["RetentionInDays"] for group in groups.values()} == {load_stage("dev").log_retention_days}


def test_no_function_may_write_or_delete_the_audit(walk: Walk) -> None:
    audit = target(walk.template["Outputs"]["AuditLog"]["Value"])
    policies = [*walk.of("AWS::IAM::Policy").values(), *walk.of("AWS::IAM::Role").values()]
    assert policies
    assert audit not in json.dumps(policies)


def test_every_function_runs_on_the_processor_and_python_of_the_stage(walk: Walk) -> None:
    for properties in walk.of("AWS::Lambda::Function").values():
        assert (properties["Architectures"], properties["Runtime"]) == (["arm64"], "python3.13")


def test_cdk_05_the_compiled_files_of_every_asset_fit_to_its_function(product: Walk, assembly: Path) -> None:
    manifest = json.loads((assembly / "tahan-dev.assets.json").read_text(encoding="utf-8"))
    for properties in product.of("AWS::Lambda::Function").values():
        key = properties["Code"]["S3Key"].removesuffix(".zip")
        directory = assembly / manifest["files"][key]["source"]["path"]
        assert compiled_files(directory)
        (architecture,) = properties["Architectures"]
        check_binaries(directory, architecture=architecture, python=properties["Runtime"].removeprefix("python"))
        module = properties["Handler"].removesuffix(".handler").replace(".", "/")
        assert (directory / f"{module}.py").is_file()
        assert not (directory / "functions" / "registry.py").exists()


def test_the_environment_is_what_settings_read_back(walk: Walk) -> None:
    for properties in walk.of("AWS::Lambda::Function").values():
        written = environ(properties)
        assert Settings.from_environ(written).to_environ().keys() == written.keys()
        assert all(name.startswith(PREFIX) for name in written)


def test_a_consumer_is_told_its_own_queues_tables_and_endpoints(declared: Walk) -> None:
    read = Settings.from_environ(environ(function(declared, "WorkerPayingConsumerFunction")))
    assert read.pace == 1
    assert {name: plain(value.strip("<>")) for name, value in read.tables.items()} == {
        "orders": "FoundationTablesItemsOrders"
    }
    assert {name: plain(value.strip("<>")) for name, value in read.queues.items()} == {
        "paying": "WorkerPayingQueuesSource"
    }
    assert list(read.dead_letter_queues) == ["paying"]
    assert read.endpoints == {"payment-provider": "<EndpointPaymentProvider>"}
    assert read.cache_host.endswith(".Endpoint.Address>")
    assert read.cache_port.endswith(".Endpoint.Port>")
    assert read.cache_tls
    assert read.cache_cluster
    (user,) = declared.of("AWS::ElastiCache::User").values()
    (cache,) = declared.of("AWS::ElastiCache::ServerlessCache").values()
    assert (read.cache_user, read.cache_name) == (user["UserId"], cache["ServerlessCacheName"])


@pytest.mark.parametrize("name", ["OutboxRelayFunction", "OutboxSweeperFunction"])
def test_relay_and_sweeper_are_told_all_queues_and_no_cache(declared: Walk, name: str) -> None:
    read = Settings.from_environ(environ(function(declared, name)))
    assert set(read.queues) == {worker.name for worker in WORKERS} | {"added"}
    assert (read.cache_host, read.cache_user, read.cache_name) == ("", "", "")


def test_the_counter_is_told_the_jobs_that_are_split_and_no_queue(declared: Walk) -> None:
    read = Settings.from_environ(environ(function(declared, "PartCounterFunction")))
    assert read.routes == {"crawl": "slow"}
    assert (read.queues, read.cache_host) == ({}, "")


def test_the_lookout_brakes_what_does_nothing_without_its_dependency_and_the_sweeper_frees_everything(
    product: Walk,
) -> None:
    looking = Settings.from_environ(environ(function(product, "LookoutFunction")))
    sweeping = Settings.from_environ(environ(function(product, "OutboxSweeperFunction")))
    braked = {worker.name: " ".join(each.name for each in worker.needs) for worker in REGISTERED if worker.needs}
    assert looking.needs == braked
    assert set(looking.mappings) == set(braked) >= {"payments", "inventory"}
    assert set(looking.gates) >= {"payment-provider", "inventory-system"}
    assert set(sweeping.mappings) == {worker.name for worker in REGISTERED}
    for name, told in sweeping.mappings.items():
        _, concurrency = told.split()
        assert [int(concurrency)] == [worker.max_concurrency for worker in REGISTERED if worker.name == name]


def test_an_endpoint_is_a_parameter_with_the_stages_default(declared: Walk) -> None:
    assert declared.template["Parameters"]["EndpointPaymentProvider"] == {
        "Type": "String",
        "Default": "https://pay.example",
        "Description": "Base URL of payment-provider",
        "AllowedPattern": "https://.+",
    }


def test_every_table_can_be_restored_and_forgets_by_ttl(walk: Walk) -> None:
    for table in walk.of("AWS::DynamoDB::Table").values():
        assert table["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
        assert table["TimeToLiveSpecification"] == {"AttributeName": "ttl", "Enabled": True}
        assert table["BillingMode"] == "PAY_PER_REQUEST"


def test_a_business_table_has_the_declared_keys_as_strings(declared: Walk) -> None:
    (lines,) = [t for n, t in declared.of("AWS::DynamoDB::Table").items() if plain(n).endswith("OrderLines")]
    assert lines["KeySchema"] == [
        {"AttributeName": "order_id", "KeyType": "HASH"},
        {"AttributeName": "line_id", "KeyType": "RANGE"},
    ]
    assert {a["AttributeType"] for a in lines["AttributeDefinitions"]} == {"S"}


def test_outputs_have_plain_names(declared: Walk) -> None:
    workers = ("Paying", "Reading", "InOrder", "Slow", "Added")
    expected = {
        "Api",
        "AuditLog",
        "LookoutFunction",
        "JobsTable",
        "OutboxTable",
        "AlarmTopic",
        "TableOrders",
        "TableOrderLines",
        "BucketDeposits",
        "BucketPages",
    }
    expected |= {"TableUsers", "TableUserOrders", "TableInventory", "TableInvoices"}  # what the front door shows
    expected |= {f"{kind}{name}" for kind in ("Queue", "DeadLetterQueue", "Consumer", "Mapping") for name in workers}
    assert set(declared.template["Outputs"]) == expected


@pytest.mark.parametrize("retain", [False, True])
def test_data_outlives_the_stack_where_the_stage_says_so(declared: Walk, synth: Synth, *, retain: bool) -> None:
    walk = synth(Stage(name="kept", retain=True), [PAYING, SLOW]) if retain else declared
    stateful = ("AWS::DynamoDB::Table", "AWS::SQS::Queue", "AWS::KMS::Key", "AWS::Logs::LogGroup", "AWS::S3::Bucket")
    resources = [r for r in walk.template["Resources"].values() if r["Type"] in stateful]
    assert {r["DeletionPolicy"] for r in resources} == {"Retain" if retain else "Delete"}
    assert {t["DeletionProtectionEnabled"] for t in walk.of("AWS::DynamoDB::Table").values()} == {retain}


def test_the_local_stage_is_the_same_template_with_other_numbers(synth: Synth) -> None:
    stage = load_stage("local")
    walk = synth(stage, [PAYING, inventory.WORKER, notifications.WORKER])
    properties = function(walk, "WorkerPayingConsumerFunction")
    assert properties["Runtime"] == f"python{stage.python_version}"
    assert properties["Timeout"] == stage.at(PAYING).function_timeout.total_seconds() == 4
    read = Settings.from_environ(environ(properties))
    assert (read.pace, read.cache_tls, read.cache_cluster, read.cache_user) == (0.1, False, False, "")
    limits = [mapped["ScalingConfig"] for mapped in walk.mappings("SQS").values()]
    assert limits == [{"MaximumConcurrency": 3}] * 3
    assert walk.of("AWS::ElastiCache::ServerlessCache")
    assert not walk.of("AWS::ElastiCache::User")


def test_sweeper_and_lookout_run_every_minute_and_end_before_the_next(walk: Walk) -> None:
    called = []
    for rule in walk.of("AWS::Events::Rule").values():
        assert (rule["ScheduleExpression"], rule["State"]) == ("rate(1 minute)", "ENABLED")
        (to,) = rule["Targets"]
        called.append(walk.of("AWS::Lambda::Function")[walk.called(to["Arn"])])
    assert sorted(each["Handler"] for each in called) == [
        "functions.lookout.handler",
        "functions.outbox_sweeper.handler",
    ]
    assert all(each["Timeout"] < 60 for each in called)
    permissions = [p for p in walk.of("AWS::Lambda::Permission").values() if p["Principal"] == "events.amazonaws.com"]
    assert {target(each["SourceArn"]) for each in permissions} == set(walk.of("AWS::Events::Rule"))
    outbox = walk.of("AWS::DynamoDB::Table")[target(walk.streamed("relay")["EventSourceArn"])]
    (index,) = outbox["GlobalSecondaryIndexes"]
    assert (index["IndexName"], index["Projection"]) == ("waiting", {"ProjectionType": "KEYS_ONLY"})
    assert [key["AttributeName"] for key in index["KeySchema"]] == ["pending", "due_at"]
    (lanes,) = outbox["LocalSecondaryIndexes"]
    assert (lanes["IndexName"], lanes["Projection"]) == ("lanes", {"ProjectionType": "KEYS_ONLY"})
    assert [key["AttributeName"] for key in lanes["KeySchema"]] == ["lane", "place"]
