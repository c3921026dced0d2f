"""The topic that every alarm speaks to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns

if TYPE_CHECKING:
    from aws_cdk import aws_kms as kms
    from constructs import Construct


def alarm_topic(scope: Construct, *, key: kms.IKey | None, email: str | None) -> sns.Topic:
    """A topic that takes only TLS and the alarms of this account.

    Without a customer key it is not encrypted: CloudWatch cannot use the key that AWS manages for SNS.
    """
    topic = sns.Topic(scope, "Alarms", master_key=key, enforce_ssl=True)
    topic.add_to_resource_policy(
        iam.PolicyStatement(
            sid="AlarmsOfThisAccount",
            principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
            actions=["sns:Publish"],
            resources=[topic.topic_arn],
            conditions={"StringEquals": {"aws:SourceAccount": Stack.of(scope).account}},
        )
    )
    if email is not None:
        sns.Subscription(scope, "AlarmEmail", topic=topic, protocol=sns.SubscriptionProtocol.EMAIL, endpoint=email)
    return topic
