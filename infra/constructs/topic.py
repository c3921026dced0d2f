"""The topic that every alarm speaks to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Annotations, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns

if TYPE_CHECKING:
    from aws_cdk import aws_kms as kms
    from constructs import Construct

    from infra.settings import Stage


def alarm_topic(scope: Construct, *, key: kms.IKey | None, stage: Stage) -> sns.Topic:
    """A topic that takes only TLS and the alarms of this account, and tells the stage's `alarm_email`.

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
    if stage.alarm_email is not None:
        protocol = sns.SubscriptionProtocol.EMAIL
        sns.Subscription(scope, "AlarmEmail", topic=topic, protocol=protocol, endpoint=stage.alarm_email)
    elif stage.retain:
        Annotations.of(topic).add_warning_v2(
            "tahan:alarms-reach-nobody",
            f"stage {stage.name!r} keeps real data and its alarms reach nobody: set alarm_email in cdk.json, or"
            " subscribe to the topic of the output AlarmTopic.",
        )
    return topic
