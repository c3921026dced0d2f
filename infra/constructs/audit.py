"""Where it is told who changed what in this stack, and why. Operators write it; no function of the stack may, or may delete it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import CfnOutput, Stack

from infra.constructs.log_group import log_group

if TYPE_CHECKING:
    from aws_cdk import aws_kms as kms
    from aws_cdk import aws_logs as logs
    from constructs import Construct

    from infra.stage.settings import Stage


def audit_log(scope: Construct, *, key: kms.IKey | None, stage: Stage) -> logs.LogGroup:
    """The log group; its name is the output `AuditLog`."""
    group = log_group(scope, "Audit", key=key, stage=stage)
    CfnOutput(Stack.of(scope), "AuditLog", value=group.log_group_name)
    return group
