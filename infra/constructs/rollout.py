"""How a new version takes over: CodeDeploy moves the alias, a part first, and moves it back when an alarm rings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import aws_codedeploy as codedeploy
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.choices import AT_ONCE
from infra.grants import ALARMS, SHIFT, allow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aws_cdk import aws_cloudwatch as cloudwatch

    from infra.constructs.function import Function
    from infra.settings import Stage


class Rollout(Construct):
    """The rollout of a stack's functions, as its stage says; where that is at once, CloudFormation moves the aliases."""

    def __init__(self, scope: Construct, construct_id: str, *, stage: Stage) -> None:
        super().__init__(scope, construct_id)
        self._gradual = stage.rollout != AT_ONCE
        if not self._gradual:
            return
        self._config = getattr(codedeploy.LambdaDeploymentConfig, stage.rollout.upper().replace("-", "_"))
        self._application = codedeploy.LambdaApplication(self, "Application")
        # Of its own, since AWS's managed policy for it reaches every function of the account.
        self._role = iam.Role(
            self,
            "Role",
            description="Moves aliases of the stack's functions to new versions, and back",
            assumed_by=iam.ServicePrincipal("codedeploy.amazonaws.com"),
        )
        allow(self._role, ALARMS, "*")  # CloudWatch knows no resources for it

    def of(self, function: Function, alarms: Sequence[cloudwatch.IAlarm]) -> None:
        """Move a function's alias step by step, and back when one of the alarms rings."""
        if not self._gradual:
            return
        allow(self._role, SHIFT, function.live.function_arn)
        codedeploy.LambdaDeploymentGroup(
            function,
            "Rollout",
            application=self._application,
            alias=function.live,
            deployment_config=self._config,
            role=self._role.without_policy_updates(),
            alarms=list(alarms),
            auto_rollback=codedeploy.AutoRollbackConfig(
                failed_deployment=True, stopped_deployment=True, deployment_in_alarm=True
            ),
        )
