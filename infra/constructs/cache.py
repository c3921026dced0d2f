"""Valkey Serverless in the isolated subnets; only the functions reach it. What it holds may be lost at any time.

It asks who is there: the functions are its one user, whom IAM vouches for.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING

from aws_cdk import Stack
from aws_cdk import aws_elasticache as elasticache
from constructs import Construct

from infra.access import access_string
from infra.constructs.network import ISOLATED
from infra.grants import CONNECT, allow

if TYPE_CHECKING:
    from aws_cdk import aws_ec2 as ec2
    from aws_cdk import aws_iam as iam
    from aws_cdk import aws_kms as kms

    from infra.constructs.network import Network
    from infra.stage.settings import Stage

ENGINE = "valkey"
ENGINE_VERSION = "8"
# A serverless cache listens on both: the second is for reads that may be stale.
PORTS = (6379, 6380)
LONGEST_NAME = 40


class Cache(Construct):
    """The cache and where to find it."""

    def __init__(
        self, scope: Construct, construct_id: str, *, network: Network, key: kms.IKey | None, stage: Stage
    ) -> None:
        super().__init__(scope, construct_id)
        stack = Stack.of(self)
        group = network.admit("Cache", "Cache of the stack", *PORTS)
        subnets = network.vpc.select_subnets(subnet_group_name=ISOLATED).subnets
        self._user = self._the_user() if stage.cache_iam else None
        self.name = _name(stack, subnets, key, made=stage.network is None)
        self.resource = elasticache.CfnServerlessCache(
            self,
            "Valkey",
            engine=ENGINE,
            major_engine_version=ENGINE_VERSION,
            serverless_cache_name=self.name,
            description=f"Leases, cached values and limits of {stack.stack_name}",
            kms_key_id=None if key is None else key.key_arn,
            security_group_ids=[group.security_group_id],
            subnet_ids=[subnet.subnet_id for subnet in subnets],
            user_group_id=None if self._user is None else self._group_of(self._user),
        )
        self.host = self.resource.attr_endpoint_address
        self.port = self.resource.attr_endpoint_port
        self.user = "" if self._user is None else self._user.user_id

    def admit(self, role: iam.IRole) -> None:
        """Let a role be the user, in this cache; one without users admits everybody who reaches it."""
        if self._user is not None:
            allow(role, CONNECT, self.resource.attr_arn, self._user.attr_arn)

    def _the_user(self) -> elasticache.CfnUser:
        # For IAM its name must be its id, which is kept in lower case (ElastiCache user guide, limitations of IAM).
        name = _named(Stack.of(self), Stack.of(self).stack_name)
        return elasticache.CfnUser(
            self,
            "User",
            engine=ENGINE,
            user_id=name,
            user_name=name,
            access_string=access_string(),
            authentication_mode={"Type": "iam"},
        )

    def _group_of(self, user: elasticache.CfnUser) -> str:
        # A group of engine Valkey may hold only users with a password or IAM (ElastiCache user guide, RBAC), so nobody
        # comes in without a token. CloudFormation's page of UserIds asks for a user "default" and tells the engines not
        # apart; CDK's own construct (aws-elasticache-alpha, UserGroup) demands it of engine Redis alone. We follow that;
        # it has not been tried on AWS, whose refusal would be the error DefaultUserRequired.
        group = elasticache.CfnUserGroup(
            self,
            "Users",
            engine=ENGINE,
            user_group_id=_named(Stack.of(self), Stack.of(self).stack_name),
            user_ids=[user.ref],
        )
        return group.ref


def _name(stack: Stack, subnets: list[ec2.ISubnet], key: kms.IKey | None, *, made: bool) -> str:
    """The stack's name and a digest of what cannot change in place.

    CloudFormation asks for a name, and makes the new cache before it removes the old one: under the same name it could
    not. Subnets and key are what makes it do so; subnets that we make have the same ids whatever they are, so their
    ranges are part of it.
    """
    fixed = stack.resolve(
        [[each.subnet_id, *([each.ipv4_cidr_block] if made else []), each.availability_zone] for each in subnets]
    )
    fixed.append(None if key is None else stack.resolve(key.key_arn))
    return _named(stack, json.dumps(fixed, sort_keys=True))


def _named(stack: Stack, what: str) -> str:
    """A name that ElastiCache takes: the stack's, as far as there is room, and a digest."""
    digest = hashlib.sha256(what.encode()).hexdigest()[:8]
    start = re.sub("-+", "-", stack.stack_name.lower())[: LONGEST_NAME - len(digest) - 1]
    return f"{start.rstrip('-')}-{digest}"
