"""Where it is told who changed what in this stack, and why. Operators write it; no function of the stack may, or may delete it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import CfnOutput, RemovalPolicy, Stack
from aws_cdk import aws_logs as logs

from infra.settings import LOG_RETENTION

if TYPE_CHECKING:
    from aws_cdk import aws_kms as kms
    from constructs import Construct

    from infra.settings import Stage


def audit_log(scope: Construct, *, key: kms.IKey | None, stage: Stage) -> logs.LogGroup:
    """The log group; its name is the output `AuditLog`."""
    group = logs.LogGroup(
        scope,
        "Audit",
        retention=logs.RetentionDays[LOG_RETENTION[stage.log_retention_days]],
        encryption_key=key,
        removal_policy=RemovalPolicy.RETAIN if stage.retain else RemovalPolicy.DESTROY,
    )
    CfnOutput(Stack.of(scope), "AuditLog", value=group.log_group_name)
    return group
