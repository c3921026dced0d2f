"""A Lambda function with a role and a log group of its own; both hold only what the caller grants.

Whatever calls it calls its alias: a new version takes over by moving that, and the one before comes back by it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from aws_cdk import RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.constructs.log_group import log_group
from infra.constructs.queue_pair import seconds
from infra.grants import LOGS, NETWORK, allow, allow_key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import timedelta
    from pathlib import Path

    from aws_cdk import aws_kms as kms

    from infra.constructs.foundation import Foundation
    from infra.constructs.network import Network
    from infra.stage.settings import Stage
    from infra.stage.sizes import Size

    Package = Callable[[str], Path]  # an entry module -> the directory that holds it and all it needs

LIVE = "live"


@dataclass(frozen=True, slots=True)
class Shape:
    """What differs from function to function; its memory is in MiB."""

    module: str
    description: str
    timeout: timedelta
    memory: int
    reserved_concurrency: int | None = None
    provisioned_concurrency: int | None = None

    def sized(self, size: Size) -> Shape:
        """The shape in a size that a stage gives it."""
        return replace(
            self,
            memory=size.memory or self.memory,
            reserved_concurrency=size.reserved_concurrency or self.reserved_concurrency,
            provisioned_concurrency=size.provisioned_concurrency,
        )


@dataclass(frozen=True, slots=True)
class Place:
    """The network that a function runs in, and whether it calls outside systems."""

    network: Network
    egress: bool


class Function(Construct):
    """The function, its alias and its role; its environment is what `Settings.to_environ` spells."""

    def __init__(  # noqa: PLR0913 - by keyword only
        self,
        scope: Construct,
        construct_id: str,
        *,
        shape: Shape,
        stage: Stage,
        package: Package,
        environ: dict[str, str],
        key: kms.IKey | None,
        place: Place | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        group = log_group(self, "Logs", key=key, stage=stage)
        self.role = iam.Role(
            self,
            "Role",
            description=f"Permissions of {shape.description}",
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
        )
        allow(self.role, LOGS, group.log_group_arn)
        allow_key(self.role, key)
        if place is not None:
            allow(self.role, NETWORK, "*")  # Lambda checks these on every resource before it makes the function
        asset = package(shape.module)
        self.resource = lambda_.Function(
            self,
            "Function",
            description=shape.description,
            runtime=lambda_.Runtime(
                f"python{stage.python_version}", lambda_.RuntimeFamily.PYTHON, supports_snap_start=stage.snap_start
            ),
            architecture=lambda_.Architecture.ARM_64 if stage.processor == "arm64" else lambda_.Architecture.X86_64,
            handler=f"{shape.module}.handler",
            code=lambda_.Code.from_asset(str(asset), asset_hash=asset.name),
            role=self.role,
            timeout=seconds(shape.timeout),
            memory_size=shape.memory,
            reserved_concurrent_executions=shape.reserved_concurrency,
            environment=environ,
            tracing=lambda_.Tracing.ACTIVE,  # CDK lets the role put traces; X-Ray knows no resources
            log_group=group,
            logging_format=lambda_.LoggingFormat.JSON,
            application_log_level_v2=lambda_.ApplicationLogLevel.INFO,
            system_log_level_v2=lambda_.SystemLogLevel.WARN,
            vpc=None if place is None else place.network.vpc,
            vpc_subnets=None if place is None else place.network.subnets(egress=place.egress),
            security_groups=None if place is None else [place.network.functions_group],
            snap_start=lambda_.SnapStartConf.ON_PUBLISHED_VERSIONS if stage.snap_start else None,
            current_version_options=lambda_.VersionOptions(
                # To go back to; but a version with a snapshot is paid for as long as it is there.
                removal_policy=RemovalPolicy.DESTROY if stage.snap_start else RemovalPolicy.RETAIN
            ),
        )
        self.name, self.memory = self.resource.function_name, shape.memory
        self.live = lambda_.Alias(
            self,
            "Live",
            alias_name=LIVE,
            version=self.resource.current_version,
            provisioned_concurrent_executions=shape.provisioned_concurrency,
        )

    def tell(self, environ: Mapping[str, str]) -> None:
        """Tell it more, as the spelled settings say it."""
        for name, value in environ.items():
            self.resource.add_environment(name, value)


def of_foundation(
    scope: Construct, construct_id: str, shape: Shape, foundation: Foundation, package: Package
) -> Function:
    """A function outside the network that is told of the foundation, and of workers as they are added."""
    return Function(
        scope,
        construct_id,
        shape=shape,
        stage=foundation.stage,
        package=package,
        environ=foundation.settings.to_environ(),
        key=foundation.key,
    )
