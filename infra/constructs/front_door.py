"""The HTTP front door: an HTTP API whose every route asks for a verified identity, and the function behind it."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from aws_cdk import CfnOutput, CfnParameter, Stack
from aws_cdk import aws_apigatewayv2 as api
from aws_cdk import aws_apigatewayv2_authorizers as authorizers
from aws_cdk import aws_apigatewayv2_integrations as integrations
from constructs import Construct

from functions.http import reads, resources
from functions.http.routes import ROUTES
from infra.alarms.door import door_alarms
from infra.constructs.alarms import Alarms
from infra.constructs.function import Function, Place, Shape
from infra.constructs.log_group import log_group
from infra.grants import ACCEPT, CANCEL, LIST, LOOK, OUTBOX_WRITE, QUERY_INDEX, SHOW, allow, allow_deposits, allow_table
from infra.stage.sizes import FRONT_DOOR, Size
from shared.backends.dynamodb.owned_jobs import BY_OWNER, UNFINISHED
from shared.wire.deposits import DEPOSITS

if TYPE_CHECKING:
    from infra.constructs.foundation import Foundation
    from infra.constructs.function import Package
    from infra.stage.identity import Identity
    from shared.table import Table, Way

SHAPE = Shape(
    module="functions.front_door",
    description="front door: accepts jobs over HTTP",
    timeout=timedelta(seconds=8),  # a store that is silent can still be told; a repeat is safe by its key
    memory=512,
)
# What is logged of a request: no header, no body, no query, and no key.
LOGGED = {
    "request_id": "$context.requestId",
    "route": "$context.routeKey",
    "status": "$context.status",
    "latency_ms": "$context.responseLatency",
    "bytes": "$context.responseLength",
    "error": "$context.error.message",
    "authorizer_error": "$context.authorizer.error",
}


class FrontDoor(Construct):
    """The API and its function."""

    def __init__(
        self, scope: Construct, construct_id: str, *, identity: Identity, foundation: Foundation, package: Package
    ) -> None:
        super().__init__(scope, construct_id)
        stage, tables, cache = foundation.stage, foundation.tables, foundation.cache
        settings = replace(
            foundation.cache_settings,
            tables={table.name: foundation.table(table).table_name for table in _ways()},
            owner_limits=identity.owner_limits,
            buckets={DEPOSITS.bucket: foundation.deposits.bucket_name},
        )
        shape = SHAPE.sized(stage.sizes.get(FRONT_DOOR, Size()))
        function = Function(
            self,
            "Door",
            shape=shape,
            stage=stage,
            package=package,
            environ=settings.to_environ(),
            key=foundation.key,
            place=Place(foundation.network, egress=False),
        )
        self.function = function
        allow_table(function.role, tables.jobs, (*ACCEPT, *LOOK, *LIST, *CANCEL))
        for index in (BY_OWNER, UNFINISHED):
            allow(function.role, QUERY_INDEX, f"{tables.jobs.table_arn}/index/{index}")
        allow_table(function.role, tables.outbox, OUTBOX_WRITE)
        allow_deposits(function.role, foundation.deposits)
        cache.admit(function.role)
        for table, ways in _ways().items():
            allow_table(function.role, foundation.table(table), tuple(action for way in ways for action in SHOW[way]))
        self.api = api.HttpApi(
            self,
            "Api",
            description=f"Operations of {Stack.of(self).stack_name}",
            create_default_stage=False,
            default_authorizer=_authorizer(self, identity, on_host=stage.on_host),
        )
        integration = integrations.HttpLambdaIntegration("ToDoor", function.live)
        for route in ROUTES:
            self.api.add_routes(path=route.path, methods=[api.HttpMethod[route.method]], integration=integration)
        access_log = log_group(self, "Access", key=foundation.key, stage=stage)
        api.CfnStage(
            self,
            "Stage",
            api_id=self.api.api_id,
            stage_name="$default",
            auto_deploy=True,
            access_log_settings=api.CfnStage.AccessLogSettingsProperty(
                destination_arn=access_log.log_group_arn, format=json.dumps(LOGGED)
            ),
            default_route_settings=api.CfnStage.RouteSettingsProperty(
                throttling_rate_limit=identity.requests_per_second,
                throttling_burst_limit=identity.burst,
            ),
        )
        declared = door_alarms(self.api.api_id, function.name, SHAPE.timeout, foundation.alarm_settings)
        self.alarms = Alarms(self, "Alarms", declared, topic=foundation.topic)
        CfnOutput(Stack.of(self), "Api", value=self.api.api_endpoint)


def _ways() -> dict[Table, tuple[Way, ...]]:
    """The business tables that the front door reads, each once with all its ways."""
    found: dict[Table, tuple[Way, ...]] = {}
    for table, ways in (*reads.TABLES, *resources.TABLES):
        found[table] = tuple(dict.fromkeys((*found.get(table, ()), *ways)))
    return found


def _authorizer(scope: Construct, identity: Identity, *, on_host: bool) -> api.IHttpRouteAuthorizer:
    if identity.kind == "iam":
        return authorizers.HttpIamAuthorizer()
    issuer = CfnParameter(
        Stack.of(scope),
        "Issuer",
        description="Whose tokens the front door takes, as they name it",
        default=identity.issuer,
        allowed_pattern="https?://.+" if on_host else "https://.+",
    )
    return authorizers.HttpJwtAuthorizer("Jwt", issuer.value_as_string, jwt_audience=list(identity.audience))
