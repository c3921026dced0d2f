"""Valkey Serverless in the isolated subnets; only the functions reach it. What it holds may be lost at any time."""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING

from aws_cdk import Stack
from aws_cdk import aws_elasticache as elasticache
from constructs import Construct

from infra.constructs.network import ISOLATED

if TYPE_CHECKING:
    from aws_cdk import aws_ec2 as ec2
    from aws_cdk import aws_kms as kms

    from infra.constructs.network import Network

ENGINE_VERSION = "8"
# A serverless cache listens on both: the second is for reads that may be stale.
PORTS = (6379, 6380)
LONGEST_NAME = 40


class Cache(Construct):
    """The cache and where to find it."""

    def __init__(self, scope: Construct, construct_id: str, *, network: Network, key: kms.IKey | None) -> None:
        super().__init__(scope, construct_id)
        stack = Stack.of(self)
        group = network.admit("Cache", "Cache of the stack", *PORTS)
        subnets = network.vpc.select_subnets(subnet_group_name=ISOLATED).subnets
        self.resource = elasticache.CfnServerlessCache(
            self,
            "Valkey",
            engine="valkey",
            major_engine_version=ENGINE_VERSION,
            serverless_cache_name=_name(stack, subnets, key),
            description=f"Leases, cached values and limits of {stack.stack_name}",
            kms_key_id=None if key is None else key.key_arn,
            security_group_ids=[group.security_group_id],
            subnet_ids=[subnet.subnet_id for subnet in subnets],
        )
        self.host = self.resource.attr_endpoint_address
        self.port = self.resource.attr_endpoint_port


def _name(stack: Stack, subnets: list[ec2.ISubnet], key: kms.IKey | None) -> str:
    """The stack's name and a digest of what cannot change in place.

    CloudFormation asks for a name, and makes the new cache before it removes the old one: under the same name it could
    not. Subnets and key are what makes it do so.
    """
    fixed = stack.resolve([[s.subnet_id, s.ipv4_cidr_block, s.availability_zone] for s in subnets])
    fixed.append(None if key is None else stack.resolve(key.key_arn))
    digest = hashlib.sha256(json.dumps(fixed, sort_keys=True).encode()).hexdigest()[:8]
    start = re.sub("-+", "-", stack.stack_name.lower())[: LONGEST_NAME - len(digest) - 1]
    return f"{start.rstrip('-')}-{digest}"
