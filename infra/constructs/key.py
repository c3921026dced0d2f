"""The account's own key for everything at rest.

Its policy names services by condition, never a queue, role or topic of the stack: so nothing can point back at it in a
circle, and the key may live in another stack.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms

from infra.grants import regional

if TYPE_CHECKING:
    from constructs import Construct

    from infra.stage.settings import Stage


def customer_key(scope: Construct, *, stage: Stage) -> kms.IKey:
    """The stage's `key_arn`, or else a rotating key that the account's roles, CloudWatch and ElastiCache may use."""
    if stage.key_arn is not None:
        return kms.Key.from_key_arn(scope, "Key", stage.key_arn)
    stack = Stack.of(scope)
    key = kms.Key(
        scope,
        "Key",
        description=f"Queues, tables, cache, alarms and logs of {stack.stack_name}",
        enable_key_rotation=True,
        removal_policy=RemovalPolicy.RETAIN if stage.retain else RemovalPolicy.DESTROY,
    )
    for statement in used_by_services(stack):
        key.add_to_resource_policy(statement)
    return key


def used_by_services(stack: Stack) -> list[iam.PolicyStatement]:
    """What AWS's own services do with the key: a key that is brought along needs the same in its policy."""
    return [
        iam.PolicyStatement(
            sid="LogGroups",
            principals=[iam.ServicePrincipal(regional(stack, "logs"))],
            actions=["kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey*", "kms:ReEncrypt*"],
            resources=["*"],
            conditions={
                "ArnLike": {
                    "kms:EncryptionContext:aws:logs:arn": stack.format_arn(service="logs", resource="log-group:*")
                }
            },
        ),
        iam.PolicyStatement(
            sid="AlarmsThroughTheTopic",
            principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
            actions=["kms:Decrypt", "kms:GenerateDataKey*"],
            resources=["*"],
            conditions={"StringEquals": {"aws:SourceAccount": stack.account}},
        ),
        # Whoever may make the cache makes the grant that ElastiCache works with (ElastiCache user guide, "At-rest encryption").
        iam.PolicyStatement(
            sid="TheCache",
            principals=[iam.AnyPrincipal()],
            actions=["kms:CreateGrant", "kms:Decrypt", "kms:DescribeKey", "kms:GenerateDataKey*"],
            resources=["*"],
            conditions={
                "StringEquals": {
                    "kms:CallerAccount": stack.account,
                    "kms:ViaService": regional(stack, "elasticache"),
                }
            },
        ),
    ]
