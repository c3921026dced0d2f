"""Who may do what: the whole matrix of the declared workers, and rules for every template."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infra.grants import JOB_RECORDS
from infra.stage.settings import ROOT
from tests.infra.walk import plain

if TYPE_CHECKING:
    from tests.infra.walk import Walk

# Actions that AWS cannot confine to a resource: Lambda's network interfaces, X-Ray.
NOT_CONFINABLE = {
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:UnassignPrivateIpAddresses",
    "xray:PutTelemetryRecords",
    "xray:PutTraceSegments",
}
CONSUME = {"sqs:ChangeMessageVisibility", "sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"}
READ = {"dynamodb:ConditionCheckItem", "dynamodb:GetItem"}
WRITE = {"dynamodb:PutItem", "dynamodb:UpdateItem"}
LOGS = {"logs:CreateLogStream", "logs:PutLogEvents"}
KEY = {"kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey", "kms:ReEncryptFrom", "kms:ReEncryptTo"}
XRAY = {action for action in NOT_CONFINABLE if action.startswith("xray:")}


DEPOSITED = {"s3:GetObject", "s3:ListBucket", "s3:PutObject"}
FILES = DEPOSITED | {"s3:AbortMultipartUpload"}


def consumer(worker: str, **tables: set[str]) -> dict[str, set[str]]:
    return {
        "*": NOT_CONFINABLE,
        "FoundationKey": KEY,
        "FoundationTablesJobs": READ | {"dynamodb:UpdateItem"},
        "FoundationTablesOutbox": {"dynamodb:PutItem"},
        "FoundationBucketsDeposits": DEPOSITED,
        "FoundationCacheValkey": {"elasticache:Connect"},
        "FoundationCacheUser": {"elasticache:Connect"},
        f"Worker{worker}ConsumerLogs": LOGS,
        f"Worker{worker}QueuesSource": CONSUME,
        f"Worker{worker}QueuesDeadLetters": {"sqs:SendMessage"},
        **{f"FoundationTablesItems{name}": actions for name, actions in tables.items()},
    }


SENDS = {
    f"Worker{worker}QueuesSource": {"sqs:SendMessage"} for worker in ("Paying", "Reading", "InOrder", "Slow", "Added")
}
BRAKES = {
    f"Worker{worker}Mapping": {"lambda:UpdateEventSourceMapping"}
    for worker in ("Paying", "Reading", "InOrder", "Slow", "Added")
}
MATRIX = {
    "WorkerPayingConsumerFunction": consumer("Paying", Orders=READ | WRITE),
    "WorkerReadingConsumerFunction": consumer("Reading", Orders=READ),
    "WorkerInOrderConsumerFunction": consumer("InOrder", OrderLines=READ | WRITE),
    "WorkerSlowConsumerFunction": {
        **consumer("Slow"),
        "FoundationTablesJobs": READ | WRITE | {"dynamodb:BatchGetItem"},  # its job is split into parts
        "FoundationBucketsPages": FILES,
    },
    "WorkerAddedConsumerFunction": consumer("Added"),
    "OutboxRelayFunction": {
        "*": XRAY,
        "FoundationKey": KEY,
        "FoundationTablesJobs": {"dynamodb:UpdateItem"},
        "FoundationTablesOutbox": {
            "dynamodb:DescribeStream",
            "dynamodb:GetItem",
            "dynamodb:GetRecords",
            "dynamodb:GetShardIterator",
            "dynamodb:ListStreams",
            "dynamodb:Query",  # of the index of lanes
            "dynamodb:UpdateItem",
        },
        "OutboxRelayGivenUp": {"sqs:SendMessage"},
        "OutboxRelayLogs": LOGS,
        **SENDS,
    },
    "PartCounterFunction": {
        "*": XRAY,
        "FoundationKey": KEY,
        "FoundationTablesJobs": {
            "dynamodb:BatchGetItem",
            "dynamodb:DescribeStream",
            "dynamodb:GetItem",
            "dynamodb:GetRecords",
            "dynamodb:GetShardIterator",
            "dynamodb:ListStreams",
            "dynamodb:UpdateItem",
        },
        "FoundationTablesOutbox": {"dynamodb:PutItem"},
        "PartCounterGivenUp": {"sqs:SendMessage"},
        "PartCounterLogs": LOGS,
    },
    "FrontDoorFunction": {
        "*": NOT_CONFINABLE,
        "FoundationBucketsDeposits": DEPOSITED,
        "FoundationCacheValkey": {"elasticache:Connect"},
        "FoundationCacheUser": {"elasticache:Connect"},
        "FoundationKey": KEY,
        "FoundationTablesJobs": {
            "dynamodb:BatchGetItem",
            "dynamodb:GetItem",
            "dynamodb:PutItem",
            "dynamodb:Query",  # of its two indexes
            "dynamodb:UpdateItem",
        },
        "FoundationTablesOutbox": {"dynamodb:PutItem"},
        "FoundationTablesItemsUsers": {"dynamodb:GetItem"},
        "FoundationTablesItemsOrders": {"dynamodb:BatchGetItem", "dynamodb:GetItem"},
        "FoundationTablesItemsUserOrders": {"dynamodb:Query"},
        "FoundationTablesItemsInventory": {"dynamodb:GetItem", "dynamodb:Query"},
        "FoundationTablesItemsInvoices": {"dynamodb:GetItem"},
        "FrontDoorLogs": LOGS,
    },
    "OutboxSweeperFunction": {
        "*": XRAY,
        "FoundationKey": KEY,
        "FoundationTablesJobs": {
            "dynamodb:BatchGetItem",
            "dynamodb:GetItem",
            "dynamodb:PutItem",
            "dynamodb:Query",
            "dynamodb:UpdateItem",
        },
        "FoundationTablesOutbox": {"dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:Query", "dynamodb:UpdateItem"},
        "OutboxSweeperLogs": LOGS,
        **SENDS,
        **BRAKES,
    },
    "LookoutFunction": {
        "*": NOT_CONFINABLE,
        "FoundationCacheValkey": {"elasticache:Connect"},
        "FoundationCacheUser": {"elasticache:Connect"},
        "FoundationKey": KEY,
        "FoundationTablesJobs": {"dynamodb:GetItem", "dynamodb:PutItem"},
        "LookoutLogs": LOGS,
    },
}


def test_the_matrix_of_permissions_is_this_one(declared: Walk) -> None:
    seen: dict[str, dict[str, set[str]]] = {}
    for role, function in declared.functions_by_role().items():
        allowed = seen.setdefault(plain(function), {})
        for grant in declared.grants(role):
            allowed.setdefault(plain(grant.resource), set()).add(grant.action)
    assert seen == MATRIX


def test_job_records_may_be_checked_if_and_only_if_some_transaction_does_so() -> None:
    fences = (ROOT / "shared" / "backends" / "dynamodb" / "fences.py").read_text(encoding="utf-8")
    assert ("dynamodb:ConditionCheckItem" in JOB_RECORDS) == ('"ConditionCheck"' in fences)


def test_every_function_has_a_role_of_its_own(walk: Walk) -> None:
    assert len(walk.functions_by_role()) == len(walk.of("AWS::Lambda::Function")) == len(walk.of("AWS::IAM::Role"))


def test_no_action_is_a_pattern_and_no_resource_but_for_what_aws_cannot_confine(walk: Walk) -> None:
    for role in walk.of("AWS::IAM::Role"):
        for grant in walk.grants(role):
            assert "*" not in grant.action
            assert grant.resource != "*" or grant.action in NOT_CONFINABLE


def test_no_role_is_assumed_by_anything_but_lambda(walk: Walk) -> None:
    for role in walk.of("AWS::IAM::Role").values():
        (statement,) = role["AssumeRolePolicyDocument"]["Statement"]
        assert statement["Principal"] == {"Service": "lambda.amazonaws.com"}


def test_no_queue_or_topic_is_open_to_everybody(walk: Walk) -> None:
    for kind in ("AWS::SQS::QueuePolicy", "AWS::SNS::TopicPolicy"):
        for policy in walk.of(kind).values():
            for statement in policy["PolicyDocument"]["Statement"]:
                assert statement["Effect"] == "Deny" or "Service" in statement["Principal"]
