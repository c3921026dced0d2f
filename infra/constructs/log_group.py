"""Log groups: encrypted, kept as long as the stage says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import RemovalPolicy
from aws_cdk import aws_logs as logs

from infra.stage.choices import LOG_RETENTION

if TYPE_CHECKING:
    from aws_cdk import aws_kms as kms
    from constructs import Construct

    from infra.stage.settings import Stage


def log_group(scope: Construct, construct_id: str, *, key: kms.IKey | None, stage: Stage) -> logs.LogGroup:
    """A log group of a stage."""
    return logs.LogGroup(
        scope,
        construct_id,
        retention=logs.RetentionDays[LOG_RETENTION[stage.log_retention_days]],
        encryption_key=key,
        removal_policy=RemovalPolicy.RETAIN if stage.retain else RemovalPolicy.DESTROY,
    )
