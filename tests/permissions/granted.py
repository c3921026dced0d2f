"""What each function of a template may do, and what no function calls by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.infra.walk import plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.infra.walk import Walk

Matrix = dict[str, dict[str, list[str]]]  # function, action, resources

# What AWS itself does in a function's name, or what is no call: by action, or by its service.
BY_AWS = {
    "ec2:": "Lambda makes the network interfaces of a function in a VPC",
    "elasticache:Connect": "checked when a token is shown to the cache; the stand-in's asks for none (tests/infra/test_cache_access.py)",
    "kms:": "SQS, DynamoDB and S3 use the key in the function's name; the local stage has none",
    "logs:": "Lambda ships what a function prints",
    "xray:": "Lambda ships traces",
    "dynamodb:DescribeStream": "the mapping reads the stream in the function's name",
    "dynamodb:GetRecords": "the mapping reads the stream in the function's name",
    "dynamodb:GetShardIterator": "the mapping reads the stream in the function's name",
    "dynamodb:ListStreams": "the mapping reads the stream in the function's name",
    "sqs:ReceiveMessage": "the mapping polls in the function's name",
    "sqs:DeleteMessage": "the mapping deletes what a batch has done",
    "sqs:GetQueueAttributes": "the mapping asks how the queue is set up",
    "s3:ListBucket": "who may not list is told of a file that is not there as of one that is not his",
}


def granted(walk: Walk) -> Matrix:
    """What a template allows, without what AWS itself does with it."""
    found: dict[str, dict[str, set[str]]] = {}
    for role, function in walk.functions_by_role().items():
        actions = found.setdefault(plain(function), {})
        for grant in walk.grants(role):
            if why(grant.action, BY_AWS) is None:
                actions.setdefault(grant.action, set()).add(plain(grant.resource))
    return ordered(found)


def why(action: str, reasons: Mapping[str, str]) -> str | None:
    """The reason that is given for an action, or for its service."""
    return reasons.get(action) or reasons.get(f"{action.partition(':')[0]}:")


def ordered(matrix: Mapping[str, Mapping[str, set[str]]]) -> Matrix:
    """A matrix in a stable order."""
    return {
        function: {action: sorted(resources) for action, resources in sorted(actions.items())}
        for function, actions in sorted(matrix.items())
    }


def missing(of: Matrix, beside: Matrix) -> list[tuple[str, str, str]]:
    """What one matrix has and another has not: function, action, resource."""
    return [
        (function, action, resource)
        for function, actions in of.items()
        for action, resources in actions.items()
        for resource in resources
        if resource not in beside.get(function, {}).get(action, ())
    ]
