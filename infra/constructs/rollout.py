"""How a new version takes over: CodeDeploy moves the alias, a part first, and moves it back when an alarm rings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_codedeploy as codedeploy
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.choices import AT_ONCE
from infra.grants import ALARMS, SHIFT, allow

if TYPE_CHECKING:
    from infra.constructs.alarms import Alarms
    from infra.constructs.function import Function
    from infra.settings import Stage

# Alarms by which a version is taken back: what it breaks shows in them within minutes, and a busy hour does not.
TAKES_BACK = frozenset({"Errors", "RecordFailures", "DeadLetterArrival", "ServerErrors"})


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

    def of(self, function: Function, alarms: Alarms) -> None:
        """Move a function's alias step by step, and back when one of its alarms rings that a version can be to blame for."""
        if not self._gradual:
            return
        by = {name: alarm for name, alarm in alarms.named.items() if name in TAKES_BACK}
        watching = [
            cloudwatch.Alarm.from_alarm_name(function, f"BackBy{name}", alarm.ref) for name, alarm in by.items()
        ]
        allow(self._role, ALARMS, *(alarm.attr_arn for alarm in by.values()))
        allow(self._role, SHIFT, function.live.function_arn)
        codedeploy.LambdaDeploymentGroup(
            function,
            "Rollout",
            application=self._application,
            alias=function.live,
            deployment_config=self._config,
            role=self._role.without_policy_updates(),
            alarms=watching,
            auto_rollback=codedeploy.AutoRollbackConfig(
                failed_deployment=True, stopped_deployment=True, deployment_in_alarm=True
            ),
        )
