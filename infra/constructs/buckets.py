"""Buckets of files that jobs declare: private, encrypted, over TLS alone; what lies there is forgotten after a time.

Who asked for which file stands in the access logs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import CfnOutput, Duration, RemovalPolicy, Stack
from aws_cdk import aws_s3 as s3
from constructs import Construct

from shared.naming import camel
from shared.wire.deposits import KEPT

if TYPE_CHECKING:
    from aws_cdk import aws_kms as kms

    from infra.stage.settings import Stage

UNFINISHED = Duration.days(1)  # an upload of many parts whose writer died


class Buckets(Construct):
    """The buckets of a stack. Each comes into being when a worker first asks for it."""

    def __init__(
        self, scope: Construct, construct_id: str, *, stage: Stage, key: kms.IKey | None, access_logs: s3.IBucket
    ) -> None:
        super().__init__(scope, construct_id)
        self._stage = stage
        self._key = key
        self._access_logs = access_logs
        self._known: dict[str, s3.Bucket] = {}

    def named(self, name: str) -> s3.Bucket:
        """The bucket of that logical name."""
        if name not in self._known:
            self._known[name] = self._bucket(camel(name))
            CfnOutput(Stack.of(self), f"Bucket{camel(name)}", value=self._known[name].bucket_name)
        return self._known[name]

    def _bucket(self, construct_id: str) -> s3.Bucket:
        return s3.Bucket(
            self,
            construct_id,
            encryption=s3.BucketEncryption.KMS if self._key else s3.BucketEncryption.S3_MANAGED,
            encryption_key=self._key,
            bucket_key_enabled=True if self._key else None,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            enforce_ssl=True,
            minimum_tls_version=1.2,
            server_access_logs_bucket=self._access_logs,
            server_access_logs_prefix=f"files/{construct_id}/",
            lifecycle_rules=[
                s3.LifecycleRule(
                    id="forget",
                    expiration=Duration.days(KEPT.days),
                    abort_incomplete_multipart_upload_after=UNFINISHED,
                    enabled=True,
                )
            ],
            removal_policy=RemovalPolicy.RETAIN if self._stage.retain else RemovalPolicy.DESTROY,
        )
