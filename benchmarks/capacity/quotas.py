"""Every number of AWS that the model uses: its value, its unit, and the page that says so. Nothing here is measured.

What no page tells is marked as assumed, with the reason. Looked up on `AS_OF`; where a quota can be raised, `code` is its
name in Service Quotas or what to ask for.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

AS_OF = date(2026, 11, 30)
_LAMBDA = "https://docs.aws.amazon.com/lambda/latest/dg/"
_SQS = "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/"
_DYNAMODB = "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/"
_CACHE = "https://docs.aws.amazon.com/AmazonElastiCache/latest/dg/"
MAPPING_PAGE = f"{_LAMBDA}services-sqs-scaling.html"


@dataclass(frozen=True, slots=True)
class Quota:
    """A number of AWS.

    Attributes:
        value: in `unit`.
        unit: what it counts, and in which time.
        source: the page that has it, or why it is assumed.
        is_assumed: whether no page tells it.
    """

    value: float
    unit: str
    source: str
    is_assumed: bool = False


# SQS, standard queues
IN_FLIGHT = Quota(120_000, "messages in flight on one queue", f"{_SQS}quotas-queues.html")
RECEIVED_AT_ONCE = Quota(10, "messages of one ReceiveMessage", f"{_SQS}quotas-messages.html")

# Lambda's event source mapping for SQS
FIRST_INVOCATIONS = Quota(5, "concurrent invocations when messages appear", MAPPING_PAGE)
ADDED_INVOCATIONS = Quota(300, "concurrent invocations added a minute, while messages wait", MAPPING_PAGE)
MOST_INVOCATIONS = Quota(1250, "concurrent invocations of one mapping without provisioned mode", MAPPING_PAGE)
HIGHEST_MAXIMUM = Quota(1000, "the highest maximum concurrency that a mapping takes", MAPPING_PAGE)
# ... in provisioned mode, which excludes a maximum concurrency
POLLER_INVOCATIONS = Quota(10, "concurrent invocations of one poller", MAPPING_PAGE)
POLLER_BYTES = Quota(1_000_000, "bytes a second of one poller", MAPPING_PAGE)
POLLER_POLLS = Quota(10, "polls a second of one poller", MAPPING_PAGE)
PROVISIONED_ADDED = Quota(1000, "concurrent invocations added a minute in provisioned mode", MAPPING_PAGE)
LEAST_POLLERS = Quota(2, "pollers, the lowest minimum", f"{_LAMBDA}invocation-eventsourcemapping.html")
MOST_MINIMUM_POLLERS = Quota(200, "pollers, the highest minimum", f"{_LAMBDA}invocation-eventsourcemapping.html")
MOST_POLLERS = Quota(2000, "pollers, the highest maximum", f"{_LAMBDA}invocation-eventsourcemapping.html")

# Lambda
ACCOUNT_CONCURRENCY = Quota(
    1000, "concurrent invocations of all functions of an account", f"{_LAMBDA}lambda-concurrency.html"
)
REQUESTS_EACH = Quota(10, "requests a second for each unit of concurrency", f"{_LAMBDA}lambda-concurrency.html")
NEW_ENVIRONMENTS = Quota(1000, "new environments of a function in 10 seconds", f"{_LAMBDA}scaling-behavior.html")
COLD_START = Quota(
    1.0,
    "seconds of a cold start",
    "ours is not known on AWS: a Python function in a VPC takes a fraction of it",
    is_assumed=True,
)
POLL = Quota(
    0.02,
    "seconds from a free invocation to its batch",
    "a call of SQS and an invocation in one region",
    is_assumed=True,
)

# DynamoDB, on demand
PARTITION_WRITES = Quota(1000, "write units a second of one partition", f"{_DYNAMODB}warm-throughput-scenarios.html")
PARTITION_READS = Quota(3000, "read units a second of one partition", f"{_DYNAMODB}warm-throughput-scenarios.html")
NEW_TABLE_WRITES = Quota(
    4000, "write units a second that a new table takes at once", f"{_DYNAMODB}on-demand-capacity-mode.html"
)
NEW_TABLE_READS = Quota(
    12_000, "read units a second that a new table takes at once", f"{_DYNAMODB}on-demand-capacity-mode.html"
)
TABLE_UNITS = Quota(
    40_000, "write units, and read units, a second of one table; adjustable", f"{_DYNAMODB}ServiceQuotas.html"
)
TABLE_DOUBLES = Quota(
    1800,
    "seconds of load in which a table doubles: its previous peak counts for so long",
    f"{_DYNAMODB}on-demand-capacity-mode.html",
)
TRANSACTION_FACTOR = Quota(2, "units for each that a transaction writes", f"{_DYNAMODB}transaction-apis.html")
INDEX_WRITE = Quota(1, "write units of an index where an item enters or leaves it", f"{_DYNAMODB}GSI.html")
# A hot key of an index throttles the writes of its table: gsi-throttling.html

# API Gateway, HTTP APIs
API_REQUESTS = Quota(
    10_000,
    "requests a second of all APIs of an account; adjustable",
    "https://docs.aws.amazon.com/apigateway/latest/developerguide/limits.html",
)

# Streams to Lambda
BATCHES_OF_A_SHARD = Quota(
    1, "batches of one shard at a time (ParallelizationFactor: 1 to 10)", f"{_LAMBDA}services-ddb-params.html"
)
SHARDS_OF_A_NEW_TABLE = Quota(
    NEW_TABLE_WRITES.value / PARTITION_WRITES.value,
    "shards of a new table's stream",
    "as many as it has partitions, which its first throughput needs",
    is_assumed=True,
)
SENT_EACH = Quota(0.01, "seconds in which the relay sends ten messages", "a call of SQS in one region", is_assumed=True)
MARKED_EACH = Quota(
    0.005, "seconds in which it marks one as sent", "a write of DynamoDB in one region", is_assumed=True
)

# ElastiCache Serverless, Valkey 8
NEW_CACHE_UNITS = Quota(30_000, "ECPU a second that an empty cache takes at once", f"{_CACHE}Scaling.html")
MOST_CACHE_UNITS = Quota(5_000_000, "requests a second that a cache grows to", f"{_CACHE}Scaling.html")
CACHE_DOUBLES = Quota(
    180, "seconds of load in which a cache doubles, the longer of two to three minutes", f"{_CACHE}Scaling.html"
)
SLOT_UNITS = Quota(
    30_000,
    "ECPU a second of one hash slot",
    "a slot lies on one shard, and one shard is what an empty cache has",
    is_assumed=True,
)
UNITS_OF_AN_EXCHANGE = Quota(
    1,
    "ECPU of one of our exchanges",
    "as benchmarks/cost.py has it; a script is metered by its CPU time and may be more",
    is_assumed=True,
)

MESSAGE_BYTES = Quota(1000, "bytes of one message", "ours are a payload of some names", is_assumed=True)
POSTPONED_SHARE = Quota(0.01, "of jobs that fail or are turned away once", "of a good day", is_assumed=True)


def all_quotas() -> dict[str, Quota]:
    """All of them by name, in the order of this module."""
    return {name: value for name, value in globals().items() if isinstance(value, Quota)}
