"""Where it is written down who asked for which file, and who spoke to whom in the network. AWS writes it; no function of the stack reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_s3 as s3

if TYPE_CHECKING:
    from constructs import Construct

    from infra.stage.settings import Stage


def access_logs(scope: Construct, *, stage: Stage) -> s3.Bucket:
    """The bucket, which forgets as the stage's other logs do.

    Amazon's own key encrypts it: S3 writes its access logs into no bucket that has another one (S3 user guide, "Enabling
    server access logging").
    """
    return s3.Bucket(
        scope,
        "AccessLogs",
        encryption=s3.BucketEncryption.S3_MANAGED,
        block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
        object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
        enforce_ssl=True,
        lifecycle_rules=[
            s3.LifecycleRule(id="forget", expiration=Duration.days(stage.log_retention_days), enabled=True)
        ],
        removal_policy=RemovalPolicy.RETAIN if stage.retain else RemovalPolicy.DESTROY,
    )
