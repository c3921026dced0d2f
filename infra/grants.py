"""Who may do what: the permissions of each function as plain lists of actions, one resource a statement.

DynamoDB checks a transaction by its parts, so there is no TransactWriteItems here. Items are never deleted by a
function: a deletion is an update that leaves a tombstone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Stack
from aws_cdk import aws_iam as iam

from shared.table import Right, Way
from shared.wire.deposits import DEPOSITS

if TYPE_CHECKING:
    from aws_cdk import aws_dynamodb as dynamodb
    from aws_cdk import aws_kms as kms
    from aws_cdk import aws_s3 as s3
    from aws_cdk import aws_sqs as sqs

    from shared.files import Reach

CONSUME = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility", "sqs:GetQueueAttributes")
SEND = ("sqs:SendMessage",)
CONNECT = ("elasticache:Connect",)
# A fence counts on in one transaction with the check that its job is still held.
JOB_RECORDS = ("dynamodb:GetItem", "dynamodb:UpdateItem", "dynamodb:ConditionCheckItem")
ACCEPT = ("dynamodb:PutItem",)
CANCEL = ("dynamodb:UpdateItem",)
LOOK = ("dynamodb:GetItem",)
LIST = ("dynamodb:BatchGetItem",)
QUERY_INDEX = ("dynamodb:Query",)
OUTBOX_WRITE = ("dynamodb:PutItem",)
OUTBOX_SEND = ("dynamodb:GetItem", "dynamodb:UpdateItem")
OUTBOX_SWEEP = ("dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem")
GIVE_UP = ("dynamodb:UpdateItem",)
BRAKE = ("lambda:UpdateEventSourceMapping",)
ALARMS = ("cloudwatch:DescribeAlarms",)
MOVE = ("lambda:GetAlias", "lambda:UpdateAlias")
READY = ("lambda:GetProvisionedConcurrencyConfig",)
BRAKES = ("dynamodb:GetItem", "dynamodb:PutItem")  # the watchdog's, too
RESCUE = ("dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:UpdateItem")  # of parts, many at once
# A job that is split accepts its parts with their block, and looks what became of them.
SPLIT = ("dynamodb:BatchGetItem", "dynamodb:PutItem")
COUNT_PARTS = ("dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:UpdateItem")
STREAM_READ = ("dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator", "dynamodb:ListStreams")
TABLE = {
    Right.READ: ("dynamodb:GetItem", "dynamodb:ConditionCheckItem"),
    Right.READ_WRITE: ("dynamodb:GetItem", "dynamodb:ConditionCheckItem", "dynamodb:PutItem", "dynamodb:UpdateItem"),
}
FILES = {Right.READ: ("s3:GetObject",), Right.READ_WRITE: ("s3:AbortMultipartUpload", "s3:GetObject", "s3:PutObject")}
DEPOSIT = ("s3:GetObject", "s3:PutObject")
SHOW = {
    Way.ITEM: ("dynamodb:GetItem",),
    Way.MANY: ("dynamodb:BatchGetItem",),
    Way.ALL: ("dynamodb:Query",),
}
LOGS = ("logs:CreateLogStream", "logs:PutLogEvents")
# SQS asks for Decrypt also of senders, to check the data key that it generated (SQS developer guide, key management).
KEY = ("kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey", "kms:ReEncryptFrom", "kms:ReEncryptTo")
NETWORK = (
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:UnassignPrivateIpAddresses",
)


def allow(grantee: iam.IRole, actions: tuple[str, ...], *resources: str) -> None:
    """Add one statement to a role."""
    grantee.add_to_principal_policy(iam.PolicyStatement(actions=list(actions), resources=list(resources)))


def regional(stack: Stack, service: str) -> str:
    """The name that a service of the stack's region has for KMS, in every partition."""
    return f"{service}.{stack.region}.{stack.url_suffix}"


def allow_key(grantee: iam.IRole, key: kms.IKey | None) -> None:
    """Let a role use the key, but only through queues, tables and buckets, never by itself."""
    if key is None:
        return
    through = [regional(Stack.of(grantee), service) for service in ("dynamodb", "s3", "sqs")]
    grantee.add_to_principal_policy(
        iam.PolicyStatement(
            actions=list(KEY),
            resources=[key.key_arn],
            conditions={"StringEquals": {"kms:ViaService": through}},
        )
    )


def allow_table(grantee: iam.IRole, table: dynamodb.ITable, actions: tuple[str, ...]) -> None:
    """Let a role do `actions` with the items of a table."""
    allow(grantee, actions, table.table_arn)


def allow_files(grantee: iam.IRole, bucket: s3.IBucket, reach: Reach) -> None:
    """Let a role read, or write, the files of a folder."""
    _allow_folder(grantee, bucket, reach.folder.name, FILES[reach.right])


def allow_deposits(grantee: iam.IRole, bucket: s3.IBucket) -> None:
    """Let a role deposit texts, and fetch them; none is so large that it goes in parts."""
    _allow_folder(grantee, bucket, DEPOSITS.name, DEPOSIT)


def _allow_folder(grantee: iam.IRole, bucket: s3.IBucket, folder: str, actions: tuple[str, ...]) -> None:
    """Who may list nothing is told of a file that is not there as of one of others."""
    allow(grantee, actions, bucket.arn_for_objects(f"{folder}/*"))
    grantee.add_to_principal_policy(
        iam.PolicyStatement(
            actions=["s3:ListBucket"],
            resources=[bucket.bucket_arn],
            conditions={"StringLike": {"s3:prefix": f"{folder}/*"}},
        )
    )


def allow_queue(grantee: iam.IRole, queue: sqs.IQueue, actions: tuple[str, ...]) -> None:
    """Let a role do `actions` with a queue."""
    allow(grantee, actions, queue.queue_arn)
