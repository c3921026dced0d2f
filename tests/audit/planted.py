"""Defects, each with the gate and the rule that must tell it. All are planted in one app, which is synthesised once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from aws_cdk import App, CfnResource, DefaultStackSynthesizer, Stack

Json = Any


@dataclass(frozen=True, slots=True)
class Defect:
    """What is wrong, who must say so, and a resource that is so.

    Attributes:
        what: in words.
        gate: who must tell it.
        rule: by which id.
        kind: type of the resource.
        properties: its properties.
        beside: resources that it needs, by name.
        metadata: of the resource.
    """

    what: str
    gate: str
    rule: str
    kind: str
    properties: Json
    beside: dict[str, tuple[str, Json]] = field(default_factory=dict)
    metadata: Json = None

    @property
    def name(self) -> str:
        """The resource's logical name."""
        return "".join(word.capitalize() for word in self.what.replace("-", " ").split())


def planted() -> Json:
    """The template of an app that has every defect."""
    app = App(analytics_reporting=False)
    stack = Stack(app, "planted", synthesizer=DefaultStackSynthesizer(generate_bootstrap_version_rule=False))
    for defect in DEFECTS:
        resource = CfnResource(stack, defect.name, type=defect.kind, properties=defect.properties)
        for key, value in (defect.metadata or {}).items():
            resource.add_metadata(key, value)
        for name, (kind, properties) in defect.beside.items():
            CfnResource(stack, name, type=kind, properties=properties)
    return app.synth().get_stack_by_name("planted").template


def arn(name: str) -> Json:
    """The ARN of a resource of the template."""
    return {"Fn::GetAtt": [name, "Arn"]}


def queue(**properties: Json) -> tuple[str, Json]:
    return "AWS::SQS::Queue", properties


def function(**properties: Json) -> tuple[str, Json]:
    code = {"S3Bucket": "code", "S3Key": "code.zip"}
    role = f"arn:aws:iam::{ACCOUNT}:role/worker"
    return "AWS::Lambda::Function", {
        "Code": code,
        "Role": role,
        "Handler": "a.b",
        "Runtime": "python3.13",
        **properties,
    }


def policy(*statements: Json) -> tuple[str, Json]:
    document = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", **each} for each in statements]}
    return "AWS::IAM::Policy", {"PolicyName": "given", "Roles": ["worker"], "PolicyDocument": document}


def group(cidr: str, port: int) -> tuple[str, Json]:
    rule = {"CidrIp": cidr, "IpProtocol": "tcp", "FromPort": port, "ToPort": port, "Description": "in"}
    return "AWS::EC2::SecurityGroup", {"GroupDescription": "a group", "SecurityGroupIngress": [rule]}


def mapping(source: str, target: str, **properties: Json) -> tuple[str, Json]:
    return "AWS::Lambda::EventSourceMapping", {
        "EventSourceArn": arn(source),
        "FunctionName": {"Ref": target},
        **properties,
    }


def redrive(dead: str, **properties: Json) -> tuple[str, Json]:
    return queue(RedrivePolicy={"deadLetterTargetArn": arn(dead), "maxReceiveCount": 3}, **properties)


def told(**variables: str) -> tuple[str, Json]:
    return function(Environment={"Variables": variables})


def table(**properties: Json) -> tuple[str, Json]:
    return "AWS::DynamoDB::Table", {
        "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
        "BillingMode": "PAY_PER_REQUEST",
        **properties,
    }


def user(access: str, name: str = "worker", mode: str = "iam") -> tuple[str, Json]:
    return "AWS::ElastiCache::User", {
        "Engine": "valkey",
        "UserId": "worker",
        "UserName": name,
        "AccessString": access,
        "AuthenticationMode": {"Type": mode},
    }


ACCOUNT = "123456789012"
ADMINISTRATOR = "arn:aws:iam::aws:policy/AdministratorAccess"
LAMBDA = {
    "Statement": [{"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}]
}
EVERYBODY = {
    "Statement": [{"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sqs:SendMessage", "Resource": "*"}]
}
ALARM = {
    "Namespace": "AWS/SQS",
    "MetricName": "ApproximateAgeOfOldestMessage",
    "Statistic": "Maximum",
    "Period": 60,
    "EvaluationPeriods": 1,
    "Threshold": 60,
    "ComparisonOperator": "GreaterThanThreshold",
}
API = {"AnApi": ("AWS::ApiGatewayV2::Api", {"Name": "api", "ProtocolType": "HTTP"})}
OTHER_TABLE = f"arn:aws:dynamodb:eu-west-1:{ACCOUNT}:table/orders"
AN_ACCESS_KEY = "AKIA" + "QWERTYUIOPASDFGH"

DEFECTS = (
    # cdk-nag
    Defect("a queue in clear", "cdk-nag", "AwsSolutions-SQS2", *queue(SqsManagedSseEnabled=False)),
    Defect("a queue without dead letters", "cdk-nag", "AwsSolutions-SQS3", *queue()),
    Defect("a queue without tls", "cdk-nag", "AwsSolutions-SQS4", *queue()),
    Defect("a topic without tls", "cdk-nag", "AwsSolutions-SNS3", "AWS::SNS::Topic", {}),
    Defect("a bucket without access logs", "cdk-nag", "AwsSolutions-S1", "AWS::S3::Bucket", {}),
    Defect("a bucket without tls", "cdk-nag", "AwsSolutions-S10", "AWS::S3::Bucket", {}),
    Defect(
        "a network without flow logs", "cdk-nag", "AwsSolutions-VPC7", "AWS::EC2::VPC", {"CidrBlock": "10.0.0.0/16"}
    ),
    Defect("a group open to the world", "cdk-nag", "AwsSolutions-EC23", *group("0.0.0.0/0", 443)),
    Defect("a key that stays", "cdk-nag", "AwsSolutions-KMS5", "AWS::KMS::Key", {"KeyPolicy": LAMBDA}),
    Defect("a table without recovery", "cdk-nag", "AwsSolutions-DDB3", *table()),
    Defect(
        "a role of amazons making",
        "cdk-nag",
        f"AwsSolutions-IAM4[Policy::{ADMINISTRATOR}]",
        "AWS::IAM::Role",
        {"AssumeRolePolicyDocument": LAMBDA, "ManagedPolicyArns": [ADMINISTRATOR]},
    ),
    Defect(
        "a policy of patterns",
        "cdk-nag",
        "AwsSolutions-IAM5[Action::dynamodb:*]",
        *policy({"Action": "dynamodb:*", "Resource": OTHER_TABLE}),
    ),
    Defect(
        "an api without access logs",
        "cdk-nag",
        "AwsSolutions-APIG1",
        "AWS::ApiGatewayV2::Stage",
        {"ApiId": {"Ref": "AnApi"}, "StageName": "one"},
        beside=API,
    ),
    Defect(
        "a route for everybody",
        "cdk-nag",
        "AwsSolutions-APIG4",
        "AWS::ApiGatewayV2::Route",
        {"ApiId": {"Ref": "AnApi"}, "RouteKey": "GET /", "AuthorizationType": "NONE"},
    ),
    Defect("a function without traces", "cdk-nag", "Serverless-LambdaTracing", *function()),
    Defect("logs for ever", "cdk-nag", "Serverless-CloudWatchLogGroupRetentionPeriod", "AWS::Logs::LogGroup", {}),
    Defect(
        "a mapping that hides too short",
        "cdk-nag",
        "Additional-LambdaEventSourceSQSVisibilityTimeout",
        *mapping("AShortQueue", "ALongFunction"),
        beside={"AShortQueue": queue(VisibilityTimeout=60), "ALongFunction": function(Timeout=60)},
    ),
    Defect(
        "a url for everybody",
        "cdk-nag",
        "Additional-LambdaFunctionUrlAuth",
        "AWS::Lambda::Url",
        {"AuthType": "NONE", "TargetFunctionArn": arn("ALongFunction")},
    ),
    Defect(
        "a permission for everybody",
        "cdk-nag",
        "Additional-LambdaFunctionPublicAccessProhibited",
        "AWS::Lambda::Permission",
        {"Action": "lambda:InvokeFunction", "FunctionName": {"Ref": "ALongFunction"}, "Principal": "*"},
    ),
    Defect(
        "an alarm that nobody hears", "cdk-nag", "Additional-CloudWatchAlarmAction", "AWS::CloudWatch::Alarm", ALARM
    ),
    Defect("logs in clear", "cdk-nag", "Additional-CloudWatchLogGroupEncrypted", "AWS::Logs::LogGroup", {}),
    Defect("a function that logs anywhere", "cdk-nag", "Additional-LambdaLogging", *function()),
    # cfn-lint
    Defect("a misspelt property", "cfn-lint", "E3002", *queue(VisibilityTimeot=60)),
    Defect("a value out of range", "cfn-lint", "E3034", *queue(VisibilityTimeout=50_000)),
    Defect("an untraced function", "cfn-lint", "WS1000", *function()),
    Defect("a queue without redrive", "cfn-lint", "ES6000", *queue()),
    Defect(
        "an api without throttle",
        "cfn-lint",
        "ES2003",
        "AWS::ApiGatewayV2::Stage",
        {"ApiId": {"Ref": "AnApi"}, "StageName": "two"},
    ),
    # checkov
    Defect("an access key in the environment", "checkov", "CKV_AWS_45", *told(WHERE=AN_ACCESS_KEY)),
    Defect("a queue without any key", "checkov", "CKV_AWS_27", *queue(SqsManagedSseEnabled=False)),
    Defect("a log group without key", "checkov", "CKV_AWS_158", "AWS::Logs::LogGroup", {}),
    Defect("a table without our key", "checkov", "CKV_AWS_119", *table()),
    Defect("ssh for everybody", "checkov", "CKV_AWS_24", *group("0.0.0.0/0", 22)),
    Defect(
        "a permission for any account",
        "checkov",
        "CKV_AWS_364",
        "AWS::Lambda::Permission",
        {
            "Action": "lambda:InvokeFunction",
            "FunctionName": {"Ref": "ALongFunction"},
            "Principal": "events.amazonaws.com",
        },
    ),
    # parliament
    Defect(
        "an action that is none",
        "parliament",
        "UNKNOWN_ACTION",
        *policy({"Action": "dynamodb:GetItm", "Resource": OTHER_TABLE}),
    ),
    Defect(
        "an action on the wrong thing",
        "parliament",
        "RESOURCE_MISMATCH[sqs:SendMessage]",
        *policy({"Action": "sqs:SendMessage", "Resource": OTHER_TABLE}),
    ),
    # ours
    Defect(
        "a queue that forgets the window",
        "ours",
        "TAHAN-VISIBILITY",
        *queue(VisibilityTimeout=360),
        beside={
            "AWindow": mapping("AQueueThatForgetsTheWindow", "ALongFunction", MaximumBatchingWindowInSeconds=1),
        },
    ),
    Defect(
        "dead letters that go first",
        "ours",
        "TAHAN-DEAD-LETTER-RETENTION",
        *queue(MessageRetentionPeriod=345_600),
        beside={"APatientQueue": redrive("DeadLettersThatGoFirst", MessageRetentionPeriod=345_600)},
    ),
    Defect(
        "dead letters of anybody",
        "ours",
        "TAHAN-REDRIVE-ALLOW",
        *queue(RedriveAllowPolicy={"redrivePermission": "allowAll"}),
        beside={"ADyingQueue": redrive("DeadLettersOfAnybody")},
    ),
    Defect(
        "a cache without users",
        "ours",
        "TAHAN-CACHE-USERS",
        "AWS::ElastiCache::ServerlessCache",
        {"Engine": "valkey", "ServerlessCacheName": "cache"},
    ),
    Defect("the default user", "ours", "TAHAN-CACHE-USERS", *user("on ~a:* +get", name="default")),
    Defect("a user without iam", "ours", "TAHAN-CACHE-USERS", *user("on ~a:* +get", mode="no-password-required")),
    Defect("a user of everything", "ours", "TAHAN-CACHE-USERS", *user("on ~* +@all")),
    Defect(
        "a cache spoken to in clear",
        "ours",
        "TAHAN-CACHE-CLIENT",
        *told(TAHAN_CACHE_HOST="cache", TAHAN_CACHE_TLS="false", TAHAN_CACHE_USER="worker"),
    ),
    Defect(
        "a cache spoken to by nobody",
        "ours",
        "TAHAN-CACHE-CLIENT",
        *told(TAHAN_CACHE_HOST="cache", TAHAN_CACHE_TLS="true", TAHAN_CACHE_USER=""),
    ),
    Defect("a function in the default group", "ours", "TAHAN-DEFAULT-GROUP", *function(VpcConfig={"SubnetIds": ["a"]})),
    Defect(
        "an endpoint in the default group",
        "ours",
        "TAHAN-DEFAULT-GROUP",
        "AWS::EC2::VPCEndpoint",
        {
            "VpcId": {"Ref": "ANetworkWithoutFlowLogs"},
            "ServiceName": "com.amazonaws.eu-west-1.sqs",
            "VpcEndpointType": "Interface",
            "SecurityGroupIds": [{"Fn::GetAtt": ["ANetworkWithoutFlowLogs", "DefaultSecurityGroup"]}],
        },
    ),
    Defect("a bucket that may be public", "ours", "TAHAN-PUBLIC-BUCKET", "AWS::S3::Bucket", {}),
    Defect("a table that goes with its stack", "ours", "TAHAN-KEPT-DATA", *table(DeletionProtectionEnabled=True)),
    Defect(
        "an action by pattern",
        "ours",
        "TAHAN-STAR-ACTION[sqs:*]",
        *policy({"Action": "sqs:*", "Resource": f"arn:aws:sqs:eu-west-1:{ACCOUNT}:jobs"}),
    ),
    Defect(
        "a policy on everything",
        "ours",
        "TAHAN-STAR-RESOURCE[sqs:SendMessage]",
        *policy({"Action": "sqs:SendMessage", "Resource": "*"}),
    ),
    Defect(
        "a queue of everybody",
        "ours",
        "TAHAN-STAR-PRINCIPAL",
        "AWS::SQS::QueuePolicy",
        {"Queues": [{"Ref": "AQueueInClear"}], "PolicyDocument": EVERYBODY},
    ),
    Defect("a function that logs text", "ours", "TAHAN-FUNCTION-LOG", *function(LoggingConfig={"LogFormat": "Text"})),
    Defect("a secret by its name", "ours", "TAHAN-SECRET", *told(PROVIDER_PASSWORD="x")),
    Defect("a secret by its value", "ours", "TAHAN-SECRET", *told(WHERE="https://me:hidden@provider.example")),
    Defect(
        "a tool silenced in the template",
        "ours",
        "TAHAN-ONE-FILE",
        *queue(),
        metadata={"checkov": {"skip": [{"id": "CKV_AWS_27", "comment": "not now"}]}},
    ),
)
