"""How a new version takes over: CodeDeploy moves the alias, a part first, and moves it back when an alarm rings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_codedeploy as codedeploy
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.alarms.function import version_alarm
from infra.constructs.alarms import Alarms
from infra.constructs.function import LIVE
from infra.grants import ALARMS, MOVE, READY, allow
from infra.stage.choices import AT_ONCE

if TYPE_CHECKING:
    from aws_cdk import aws_sns as sns

    from infra.constructs.function import Function
    from infra.stage.settings import Stage

# Alarms by which a version is taken back, beside its own errors: what it breaks shows in them within minutes. A dead letter is
# not among them: any producer can make one.
TAKES_BACK = frozenset({"RecordFailures", "ServerErrors", "Canary"})


class Rollout(Construct):
    """The rollout of a stack's functions, as its stage says; where that is at once, CloudFormation moves the aliases."""

    def __init__(self, scope: Construct, construct_id: str, *, stage: Stage, topic: sns.ITopic) -> None:
        super().__init__(scope, construct_id)
        self._gradual = stage.rollout != AT_ONCE
        if not self._gradual:
            return
        self._topic = topic
        self._config = getattr(codedeploy.LambdaDeploymentConfig, stage.rollout.upper().replace("-", "_"))
        self._application = codedeploy.LambdaApplication(self, "Application")
        # Of its own, since AWS's managed policy for it reaches every function of the account.
        self._role = iam.Role(
            self,
            "Role",
            description="Moves aliases of the stack's functions to new versions, and back",
            assumed_by=iam.ServicePrincipal("codedeploy.amazonaws.com"),
        )

    def of(self, subject: str, function: Function, alarms: Alarms) -> None:
        """Move a function's alias step by step, and back when an alarm rings that a version can be to blame for."""
        if not self._gradual:
            return
        version = function.resource.current_version.version
        declared = [version_alarm(subject, function.name, f"{function.name}:{LIVE}", version)]
        own = Alarms(function, "RolloutAlarms", declared, topic=self._topic).named
        by = {**own, **{each: alarm for each, alarm in alarms.named.items() if each in TAKES_BACK}}
        allow(self._role, ALARMS, *(alarm.attr_arn for alarm in by.values()))
        # Lambda asks for the function where an alias is moved, and for the alias where it is kept ready. Neither refers to
        # the alias itself: the permission must be there before CloudFormation has it moved.
        arn = function.resource.function_arn
        allow(self._role, MOVE, arn)
        allow(self._role, READY, f"{arn}:{LIVE}")
        group = codedeploy.LambdaDeploymentGroup(
            function,
            "Rollout",
            application=self._application,
            alias=function.live,
            deployment_config=self._config,
            role=self._role.without_policy_updates(),
            alarms=[
                cloudwatch.Alarm.from_alarm_name(function, f"BackBy{each}", alarm.ref) for each, alarm in by.items()
            ],
            auto_rollback=codedeploy.AutoRollbackConfig(
                failed_deployment=True, stopped_deployment=True, deployment_in_alarm=True
            ),
        )
        group.node.add_dependency(self._role.node.find_child("DefaultPolicy"))
