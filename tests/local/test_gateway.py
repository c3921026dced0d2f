"""The stand-in's HTTP API, as the local front door stands in it: whose tokens it takes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import boto3

from local.outside.issuer import AUDIENCE, KEYS, IssuerServer, issuer_at
from local.outside.tokens import Issuer
from local.processes.children import Children
from local.processes.environment import CREDENTIALS, REGION
from local.stack.standin import start_standin
from local.stack.valkey import Valkey
from shared.clock import SystemClock
from tests.local.asking import got

if TYPE_CHECKING:
    from pathlib import Path

CLOCK = SystemClock()


def test_the_stand_ins_gateway_lets_in_whom_the_issuer_names_and_nobody_else(
    tmp_path: Path, server: IssuerServer, key: Path
) -> None:
    issuer = issuer_at(server.url, key, CLOCK)
    past = datetime.now(UTC) - timedelta(minutes=5)
    refused = {
        "no token": None,
        "another's key": Issuer(server.url, AUDIENCE, CLOCK).token("user-1"),
        "another's key under this name": replace(Issuer(server.url, AUDIENCE, CLOCK), kid=issuer.kid).token("user-1"),
        "for somebody else": issuer.token("user-1", aud="elsewhere"),
        "of another issuer": issuer.token("user-1", iss="http://127.0.0.1:1"),
        "ended": issuer.token("user-1", exp=past),
    }
    with Children() as children:
        valkey = Valkey(children, tmp_path / "valkey")
        standin = start_standin(children, tmp_path / "standin", valkey, lambda _: None)
        url = f"{_api(standin.endpoint, server.url)}{KEYS}"

        assert got(url, issuer.token("user-1")) == (200, server.keys)
        assert {kind: got(url, token)[0] for kind, token in refused.items()} == dict.fromkeys(refused, 401)


def _api(endpoint: str, issuer: str) -> str:
    """An HTTP API in the stand-in whose one route asks for a token and shows the issuer's keys."""
    apis: Any = boto3.client(
        "apigatewayv2",
        endpoint_url=endpoint,
        region_name=REGION,
        aws_access_key_id=CREDENTIALS["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key="local",
    )
    api = apis.create_api(Name="keys", ProtocolType="HTTP")["ApiId"]
    authorizer = apis.create_authorizer(
        ApiId=api,
        Name="jwt",
        AuthorizerType="JWT",
        IdentitySource=["$request.header.Authorization"],
        JwtConfiguration={"Audience": [AUDIENCE], "Issuer": issuer},
    )["AuthorizerId"]
    integration = apis.create_integration(
        ApiId=api, IntegrationType="HTTP_PROXY", IntegrationMethod="GET", IntegrationUri=issuer
    )["IntegrationId"]
    apis.create_route(
        ApiId=api,
        RouteKey=f"GET {KEYS}",
        AuthorizationType="JWT",
        AuthorizerId=authorizer,
        Target=f"integrations/{integration}",
    )
    apis.create_stage(ApiId=api, StageName="$default", AutoDeploy=True)
    return f"{endpoint}/_aws/execute-api/{api}"
