"""The metrics of AWS that alarms and dashboard may name, with their dimensions, as its documentation lists them."""

from __future__ import annotations

_QUEUE = ("QueueName",)
_FUNCTION = ("FunctionName",)
_TABLE = ("TableName",)
_OPERATION = ("TableName", "Operation")
_CACHE = ("clusterId",)  # of a serverless cache, which has neither EngineCPUUtilization nor ReplicationLag
_API = ("ApiId",)

KNOWN = {
    ("AWS/SQS", "ApproximateAgeOfOldestMessage"): _QUEUE,
    ("AWS/SQS", "ApproximateNumberOfMessagesNotVisible"): _QUEUE,
    ("AWS/SQS", "ApproximateNumberOfMessagesVisible"): _QUEUE,
    ("AWS/SQS", "NumberOfMessagesDeleted"): _QUEUE,
    ("AWS/SQS", "NumberOfMessagesSent"): _QUEUE,
    ("AWS/Lambda", "ConcurrentExecutions"): _FUNCTION,
    ("AWS/Lambda", "Duration"): _FUNCTION,
    ("AWS/Lambda", "Errors"): _FUNCTION,
    ("AWS/Lambda", "Invocations"): _FUNCTION,
    ("AWS/Lambda", "IteratorAge"): _FUNCTION,
    ("AWS/Lambda", "Throttles"): _FUNCTION,
    ("AWS/DynamoDB", "ConsumedReadCapacityUnits"): _TABLE,
    ("AWS/DynamoDB", "ConsumedWriteCapacityUnits"): _TABLE,
    ("AWS/DynamoDB", "ReadThrottleEvents"): _TABLE,
    ("AWS/DynamoDB", "SuccessfulRequestLatency"): _OPERATION,
    ("AWS/DynamoDB", "SystemErrors"): _OPERATION,
    ("AWS/DynamoDB", "TransactionConflict"): _TABLE,
    ("AWS/DynamoDB", "WriteThrottleEvents"): _TABLE,
    ("AWS/ElastiCache", "BytesUsedForCache"): _CACHE,
    ("AWS/ElastiCache", "ElastiCacheProcessingUnits"): _CACHE,
    ("AWS/ElastiCache", "Evictions"): _CACHE,
    ("AWS/ElastiCache", "ThrottledCmds"): _CACHE,
    ("AWS/ApiGateway", "5xx"): _API,
    ("AWS/ApiGateway", "Count"): _API,
    ("AWS/ApiGateway", "Latency"): _API,
}
