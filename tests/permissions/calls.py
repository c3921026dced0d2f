"""What an AWS call needs: the actions that IAM checks, each with the resource, by the name that the call has for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

# IAM's actions, where they are not called like the operation (Service Authorization Reference).
SAME = {
    "SendMessageBatch": "SendMessage",
    "DeleteMessageBatch": "DeleteMessage",
    "ChangeMessageVisibilityBatch": "ChangeMessageVisibility",
    "HeadObject": "GetObject",
    "CreateMultipartUpload": "PutObject",
    "UploadPart": "PutObject",
    "CompleteMultipartUpload": "PutObject",
    "ListObjectsV2": "ListBucket",
}
PARTS = {"Put": "PutItem", "Update": "UpdateItem", "Delete": "DeleteItem", "ConditionCheck": "ConditionCheckItem"}


def needed(call: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The actions of a recorded call, each with the name of its resource.

    Raises:
        ValueError: a service that no function has used yet.
    """
    service, operation = call["service"], call["operation"]
    action = f"{service}:{SAME.get(operation, operation)}"
    match service:
        case "dynamodb" if "parts" in call:
            for kind, table in call["parts"]:
                yield f"dynamodb:{PARTS[kind]}", table
        case "dynamodb" if "tables" in call:
            for table in call["tables"]:
                yield action, table
        case "dynamodb":
            yield action, call["TableName"]
        case "sqs":
            yield action, call["QueueUrl"].rpartition("/")[2]
        case "s3":
            yield action, call["Bucket"]
        case "lambda" if "UUID" in call:
            yield action, call["UUID"]
        case _:
            message = f"{service}:{operation}: say in tests/permissions/calls.py which resource it needs."
            raise ValueError(message)
