"""Where functions run: isolated subnets, and subnets with egress only if a worker calls an outside system.

DynamoDB, S3 and SQS are reached through endpoints. None is needed for KMS and logs: the services themselves call KMS, and
Lambda ships logs and traces by its own way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import CfnOutput, Fn, Stack
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

if TYPE_CHECKING:
    from aws_cdk import aws_s3 as s3

    from infra.stage.brought import ExistingNetwork
    from infra.stage.settings import Stage

ISOLATED = "Isolated"
EGRESS = "Egress"
HTTPS = ec2.Port.tcp(443)


class Network(Construct):
    """A VPC with its endpoints and flow log, or one that is there already, and the security group of the functions."""

    def __init__(
        self, scope: Construct, construct_id: str, *, stage: Stage, egress: bool, access_logs: s3.IBucket
    ) -> None:
        super().__init__(scope, construct_id)
        brought = stage.network
        self.has_egress = egress if brought is None else bool(brought.egress)
        self.vpc = self._made(stage, egress=egress) if brought is None else self._found(brought)
        self.functions_group = self._group("Functions", "Functions of the stack", outbound=True)
        if brought is not None:
            CfnOutput(Stack.of(self), "FunctionsSecurityGroup", value=self.functions_group.security_group_id)
        if isinstance(self.vpc, ec2.Vpc):
            to_bucket = ec2.FlowLogDestination.to_s3(access_logs, "network/")
            self.vpc.add_flow_log("FlowLog", destination=to_bucket, traffic_type=ec2.FlowLogTrafficType.ALL)
            self._reach_aws(self.vpc)

    def _found(self, brought: ExistingNetwork) -> ec2.IVpc:
        """A VPC that is there already, by its subnets; what reaches DynamoDB, S3 and SQS from it is its owner's affair."""
        return ec2.Vpc.from_vpc_attributes(
            self,
            "Vpc",
            vpc_id=brought.vpc,
            availability_zones=list(brought.zones),
            isolated_subnet_ids=list(brought.isolated),
            isolated_subnet_names=[ISOLATED],
            private_subnet_ids=list(brought.egress) or None,
            private_subnet_names=[EGRESS] if brought.egress else None,
        )

    def _made(self, stage: Stage, *, egress: bool) -> ec2.Vpc:
        isolated = ec2.SubnetConfiguration(name=ISOLATED, subnet_type=ec2.SubnetType.PRIVATE_ISOLATED, cidr_mask=20)
        outward = [
            ec2.SubnetConfiguration(
                name="Public", subnet_type=ec2.SubnetType.PUBLIC, cidr_mask=24, map_public_ip_on_launch=False
            ),
            ec2.SubnetConfiguration(name=EGRESS, subnet_type=ec2.SubnetType.PRIVATE_WITH_EGRESS, cidr_mask=20),
        ]
        return ec2.Vpc(
            self,
            "Vpc",
            # By name of no region: with `max_azs` a stack without a fixed region has two zones, whatever is asked for.
            availability_zones=[Fn.select(i, Fn.get_azs()) for i in range(stage.availability_zones)],
            nat_gateways=stage.nat_gateways if egress else 0,
            subnet_configuration=[isolated, *(outward if egress else [])],
            restrict_default_security_group=False,  # it would bring a function of CDK's own into the stack
        )

    def _reach_aws(self, vpc: ec2.Vpc) -> None:
        vpc.add_gateway_endpoint("DynamoDb", service=ec2.GatewayVpcEndpointAwsService.DYNAMODB)
        vpc.add_gateway_endpoint("S3", service=ec2.GatewayVpcEndpointAwsService.S3)
        endpoints_group = self._group("Endpoints", "Endpoints of AWS services", outbound=False)
        endpoints_group.add_ingress_rule(self.functions_group, HTTPS, "from the functions")
        vpc.add_interface_endpoint(
            "Sqs",
            service=ec2.InterfaceVpcEndpointAwsService.SQS,
            subnets=ec2.SubnetSelection(subnet_group_name=ISOLATED),
            security_groups=[endpoints_group],
            open=False,
        )

    def admit(self, construct_id: str, description: str, *ports: int) -> ec2.SecurityGroup:
        """A security group that admits the functions, and nobody else, on `ports`."""
        group = self._group(construct_id, description, outbound=False)
        for port in ports:
            group.add_ingress_rule(self.functions_group, ec2.Port.tcp(port), "from the functions")
        return group

    def subnets(self, *, egress: bool) -> ec2.SubnetSelection:
        """The subnets of a function that does, or does not, call outside systems."""
        return ec2.SubnetSelection(subnet_group_name=EGRESS if egress else ISOLATED)

    def _group(self, construct_id: str, description: str, *, outbound: bool) -> ec2.SecurityGroup:
        return ec2.SecurityGroup(self, construct_id, vpc=self.vpc, description=description, allow_all_outbound=outbound)
