"""What AWS asks for, in US dollars in us-east-1, without free tiers and tiers for large amounts.

As its pages had them by `AS_OF`; they change: look, change them here, and run `python -m infra.alarms.page` and `python -m benchmarks.cost`.
"""

from __future__ import annotations

from datetime import date

AS_OF = date(2026, 6, 30)
MILLION = 1_000_000

# aws.amazon.com/lambda/pricing
INVOCATIONS = 0.20  # a million
GB_SECOND = {"arm64": 0.0000133334, "x86_64": 0.0000166667}
# aws.amazon.com/sqs/pricing, standard queues
SQS_REQUESTS = 0.40  # a million, of up to ten messages each
# aws.amazon.com/dynamodb/pricing/on-demand
WRITE_UNITS = 0.625  # a million
READ_UNITS = 0.125  # a million
# aws.amazon.com/elasticache/pricing, Valkey Serverless
CACHE_UNITS = 0.0023  # a million
CACHE_GB_HOUR = 0.084
CACHE_LEAST_GB = 0.1
# aws.amazon.com/api-gateway/pricing, HTTP APIs
API_REQUESTS = 1.00  # a million
# aws.amazon.com/cloudwatch/pricing
LOGS_GB = 0.50
METRIC_MONTH = 0.30
ALARM_METRIC_MONTH = 0.10  # for each metric of an alarm
BAND_METRICS = 3  # that an alarm over a band is
COMPOSITE_MONTH = 0.50
DASHBOARD_MONTH = 3.00
# aws.amazon.com/xray/pricing; one request a second and a twentieth of the rest are traced
TRACES = 5.00  # a million
TRACED_SHARE = 0.05
# aws.amazon.com/kms/pricing
KEY_MONTH = 1.00
# aws.amazon.com/vpc/pricing, aws.amazon.com/privatelink/pricing
NAT_HOUR = 0.045
ENDPOINT_HOUR = 0.01  # in each zone
