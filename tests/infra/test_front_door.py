"""The HTTP API: no route without a verified identity, a limit on all of them, and a log that holds no secret."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from pydantic import ValidationError

from functions import front_door
from functions.http import reads, resources
from functions.http.routes import ROUTES
from infra.constructs.front_door import SHAPE
from infra.stage.identity import Identity
from infra.stage.settings import load_stage
from shared.backends.aws import CONNECT_SECONDS
from shared.settings import PREFIX, OwnerLimits, Settings
from shared.table import Way
from tests.infra.declared import PAYING, STAGE
from tests.infra.walk import listed, plain, target, text

if TYPE_CHECKING:
    from tests.infra.conftest import Synth
    from tests.infra.walk import Walk

ISSUER = "https://login.example.com"


def test_every_route_asks_for_a_token_of_the_stages_issuer(declared: Walk) -> None:
    routes = declared.of("AWS::ApiGatewayV2::Route").values()
    assert {route["RouteKey"] for route in routes} == {str(route) for route in ROUTES}
    authorizers = declared.of("AWS::ApiGatewayV2::Authorizer")
    for route in routes:
        assert route["AuthorizationType"] == "JWT"
        authorizer = authorizers[target(route["AuthorizerId"])]
        assert authorizer["JwtConfiguration"] == {"Audience": ["operations"], "Issuer": {"Ref": "Issuer"}}
        assert authorizer["IdentitySource"] == ["$request.header.Authorization"]


def test_the_issuer_is_a_parameter_of_the_stack_that_the_stage_answers(declared: Walk) -> None:
    issuer = declared.template["Parameters"]["Issuer"]
    assert (issuer["Default"], issuer["AllowedPattern"]) == (ISSUER, "https://.+")


def test_all_clients_together_are_limited(declared: Walk) -> None:
    (stage,) = declared.of("AWS::ApiGatewayV2::Stage").values()
    limits = stage["DefaultRouteSettings"]
    assert (limits["ThrottlingRateLimit"], limits["ThrottlingBurstLimit"]) == (100, 200)


def test_the_access_log_holds_no_header_no_body_and_no_key(declared: Walk) -> None:
    (stage,) = declared.of("AWS::ApiGatewayV2::Stage").values()
    logged = json.loads(stage["AccessLogSettings"]["Format"])
    assert set(logged) == {"request_id", "route", "status", "latency_ms", "bytes", "error", "authorizer_error"}
    group = declared.of("AWS::Logs::LogGroup")[target(stage["AccessLogSettings"]["DestinationArn"])]
    assert group["RetentionInDays"]
    assert "KmsKeyId" in group


def test_the_api_calls_the_front_door_and_nobody_else_may(declared: Walk) -> None:
    (integration,) = declared.of("AWS::ApiGatewayV2::Integration").values()
    live = target(integration["IntegrationUri"])
    function = declared.called(integration["IntegrationUri"])
    assert declared.of("AWS::Lambda::Function")[function]["Handler"] == "functions.front_door.handler"
    permissions = [p for p in declared.of("AWS::Lambda::Permission").values() if target(p["FunctionName"]) == live]
    assert {p["Principal"] for p in permissions} == {"apigateway.amazonaws.com"}
    assert all("SourceArn" in permission for permission in permissions)


def test_the_function_knows_the_tables_that_it_shows_and_no_others(declared: Walk) -> None:
    (function,) = [f for f in declared.of("AWS::Lambda::Function").values() if f["Handler"].startswith(SHAPE.module)]
    variables = function["Environment"]["Variables"]
    shown = {f"TAHAN_TABLE_{table.name.upper().replace('-', '_')}" for table, _ in (*reads.TABLES, *resources.TABLES)}
    assert {name for name in variables if name.startswith("TAHAN_TABLE_")} == shown
    assert target(variables["TAHAN_TABLE_USER_ORDERS"]).startswith("FoundationTablesItemsUserOrders")


def test_the_function_ends_before_the_gateway_gives_up() -> None:
    assert SHAPE.timeout.total_seconds() < 29


def test_i38_a_silent_store_is_told_by_the_function_before_its_time_is_up() -> None:
    attempt = max(front_door.READ_SECONDS, CONNECT_SECONDS)
    rests = sum(
        2**number for number in range(front_door.ATTEMPTS - 1)
    )  # seconds at the most, by botocore's standard mode
    calls = 2  # whether intake is closed, and the one that has to be done
    redis = 2 * 0.4
    assert calls * (attempt * front_door.ATTEMPTS + rests) + redis < SHAPE.timeout.total_seconds()


def test_without_an_identity_there_is_no_way_in(product: Walk) -> None:
    assert load_stage("dev").identity is None  # whose tokens, only who deploys can say
    assert not product.of("AWS::ApiGatewayV2::Api")
    assert not [f for f in product.of("AWS::Lambda::Function").values() if "front_door" in f["Handler"]]


def test_callers_with_aws_credentials_are_a_setting(synth: Synth) -> None:
    walk = synth(STAGE.model_copy(update={"identity": Identity(kind="iam")}), [PAYING])
    assert {route["AuthorizationType"] for route in walk.of("AWS::ApiGatewayV2::Route").values()} == {"AWS_IAM"}


def test_the_open_job_types_have_a_worker_that_is_deployed() -> None:
    assert front_door.OPEN == {"capture-payment": "payments", "sync-inventory": "inventory"}


def test_the_front_door_is_told_what_one_owner_may_ask_and_reaches_the_cache(declared: Walk) -> None:
    (function,) = [f for f in declared.of("AWS::Lambda::Function").values() if f["Handler"].startswith(SHAPE.module)]
    environ = {name: text(value) for name, value in function["Environment"]["Variables"].items()}
    read = Settings.from_environ(environ)
    assert read.owner_limits == OwnerLimits(requests_per_second=20, burst=40, unfinished=1000)
    assert read.cache_host.endswith(".Endpoint.Address>")
    (user,) = declared.of("AWS::ElastiCache::User").values()
    assert read.cache_user == user["UserId"]
    others = [f for f in declared.of("AWS::Lambda::Function").values() if f is not function]
    assert not [f for f in others if f"{PREFIX}OWNER_LIMITS" in f["Environment"]["Variables"]]


def test_jobs_are_found_by_sparse_indexes_of_keys_alone(walk: Walk) -> None:
    (jobs,) = [table for name, table in walk.of("AWS::DynamoDB::Table").items() if "TablesJobs" in name]
    indexes = {index["IndexName"]: index for index in jobs["GlobalSecondaryIndexes"]}
    assert {name: [key["AttributeName"] for key in index["KeySchema"]] for name, index in indexes.items()} == {
        "by_owner": ["listed_for", "created_at"],
        "unfinished": ["unfinished_of", "created_at"],
        "unended": ["unended", "look_at"],
    }
    assert {index["Projection"]["ProjectionType"] for index in indexes.values()} == {"KEYS_ONLY"}


def test_the_front_door_queries_these_indexes_and_the_tables_whose_partitions_it_shows(declared: Walk) -> None:
    (role,) = [
        role for role, function in declared.functions_by_role().items() if plain(function) == "FrontDoorFunction"
    ]
    statements = [
        statement
        for policy in declared.of("AWS::IAM::Policy").values()
        if {"Ref": role} in policy["Roles"]
        for statement in policy["PolicyDocument"]["Statement"]
        if "dynamodb:Query" in listed(statement["Action"])
    ]
    queried = [text(resource) for s in statements for resource in listed(s["Resource"])]
    indexes = [resource.rpartition("/index/")[2] for resource in queried if "/index/" in resource]
    assert sorted(indexes) == ["by_owner", "unfinished"]
    assert len(queried) - len(indexes) == len([table for table, ways in reads.TABLES if Way.ALL in ways])


def test_api8_no_other_origin_may_ask_with_a_browsers_credentials(declared: Walk) -> None:
    (api,) = declared.of("AWS::ApiGatewayV2::Api").values()
    assert "CorsConfiguration" not in api


@pytest.mark.parametrize("name", ["owner_requests_per_second", "owner_burst", "owner_unfinished"])
def test_a_limit_that_lets_nothing_through_or_cannot_be_counted_is_refused(name: str) -> None:
    for value in (0, 10_001):
        with pytest.raises(ValidationError):
            Identity(kind="iam", **{name: value})
