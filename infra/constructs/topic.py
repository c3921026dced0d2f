"""The topic that every alarm speaks to."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from aws_cdk import Annotations, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns

if TYPE_CHECKING:
    from aws_cdk import aws_kms as kms
    from constructs import Construct

    from infra.stage.settings import Stage


def alarm_topic(scope: Construct, *, key: kms.IKey | None, stage: Stage) -> sns.ITopic:
    """The stage's `alarm_topic_arn`, or else a topic that takes only TLS and the alarms of this account, and tells the `alarm_emails`.

    Without a customer key it is not encrypted: CloudWatch cannot use the key that AWS manages for SNS.
    """
    if stage.alarm_topic_arn is not None:
        return sns.Topic.from_topic_arn(scope, "Alarms", stage.alarm_topic_arn)
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
    for email in stage.alarm_emails:
        told = f"AlarmEmail{hashlib.sha256(email.encode()).hexdigest()[:8]}"  # one that goes takes no other with it
        sns.Subscription(scope, told, topic=topic, protocol=sns.SubscriptionProtocol.EMAIL, endpoint=email)
    if stage.retain and not stage.alarm_emails:
        Annotations.of(topic).add_warning_v2(
            "tahan:alarms-reach-nobody",
            f"stage {stage.name!r} keeps real data and its alarms reach nobody: set alarm_emails or alarm_topic_arn in cdk.json, or"
            " subscribe to the topic of the output AlarmTopic.",
        )
    return topic
