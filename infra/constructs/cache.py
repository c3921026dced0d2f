"""Valkey Serverless in the isolated subnets; only the functions reach it. What it holds may be lost at any time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Stack
from aws_cdk import aws_elasticache as elasticache
from constructs import Construct

from infra.constructs.network import ISOLATED

if TYPE_CHECKING:
    from infra.constructs.network import Network

ENGINE_VERSION = "8"
# A serverless cache listens on both: the second is for reads that may be stale.
PORTS = (6379, 6380)


class Cache(Construct):
    """The cache and where to find it."""

    def __init__(self, scope: Construct, construct_id: str, *, network: Network) -> None:
        super().__init__(scope, construct_id)
        stack = Stack.of(self)
        group = network.admit("Cache", "Cache of the stack", *PORTS)
        isolated = network.vpc.select_subnets(subnet_group_name=ISOLATED)
        self.resource = elasticache.CfnServerlessCache(
            self,
            "Valkey",
            engine="valkey",
            major_engine_version=ENGINE_VERSION,
            serverless_cache_name=stack.stack_name.lower(),
            description=f"Leases, cached values and limits of {stack.stack_name}",
            security_group_ids=[group.security_group_id],
            subnet_ids=isolated.subnet_ids,
        )
        self.host = self.resource.attr_endpoint_address
        self.port = self.resource.attr_endpoint_port
