"""The alarms of what everything stands on: the tables and the cache."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infra.alarms.alarm import Alarm, Missing, Runbook, Severity
from infra.alarms.function import SUSTAINED
from infra.alarms.metric import of_cache, of_table, share, total

if TYPE_CHECKING:
    from infra.stage.alarm_settings import AlarmSettings

# DynamoDB tells its own errors by operation; these are most of the product's.
OPERATIONS = ("GetItem", "UpdateItem", "Query", "TransactWriteItems")


def table_alarms(name: str, table: str, settings: AlarmSettings) -> list[Alarm]:
    """Throttling and DynamoDB's own errors.

    Its metrics speak only when there is something to tell, and CloudWatch takes missing data of that namespace for no news,
    whatever an alarm says (CloudWatch user guide, "Configuring how CloudWatch alarms treat missing data"): so it is filled.
    """
    throttled = {each.lower(): of_table(table, f"{each}ThrottleEvents") for each in ("Read", "Write")}
    errors = {f"errors{n}": of_table(table, "SystemErrors", operation=each) for n, each in enumerate(OPERATIONS)}
    return [
        Alarm(
            name=f"Table{name}",
            watched=total({**throttled, **errors}),
            threshold=settings.store_errors,
            points=(3, 5),
            setting="store_errors",
            severity=Severity.PAGE,
            sentence=f"DynamoDB throttles requests on table {name}, or fails them.",
            runbook=Runbook.STORE_ERRORS,
        )
    ]


def jobs_table_alarms(table: str, settings: AlarmSettings) -> list[Alarm]:
    """Of the job records also the conflicts of their transactions."""
    made = of_table(table, "SuccessfulRequestLatency", operation="TransactWriteItems", statistic="SampleCount")
    return [
        *table_alarms("Jobs", table, settings),
        Alarm(
            name="TransactionConflicts",
            watched=share(of_table(table, "TransactionConflict"), made, settings.least_transactions),
            threshold=settings.conflict_share,
            points=SUSTAINED,
            setting="conflict_share, from least_transactions on",
            sentence=f"Over {settings.conflict_share:g} % of the transactions on the job records conflict.",
            runbook=Runbook.CONTENTION,
        ),
    ]


def cache_alarms(cache: str, settings: AlarmSettings) -> list[Alarm]:
    """Of a serverless cache, which has no CPU and no replicas to watch."""
    units = settings.cache_units * 60
    limits = (
        ("CacheThrottled", of_cache(cache, "ThrottledCmds"), settings.cache_throttled, "cache_throttled"),
        ("CacheUnits", of_cache(cache, "ElastiCacheProcessingUnits"), units, "cache_units"),
        ("CacheBytes", of_cache(cache, "BytesUsedForCache", "Maximum"), settings.cache_bytes, "cache_bytes"),
    )
    sentences = {
        "CacheThrottled": "The cache turns commands away: it grows slower than its load.",
        "CacheUnits": f"The cache does over {settings.cache_units} processing units a second.",
        "CacheBytes": f"The cache holds over {settings.cache_bytes} bytes.",
    }
    sustained = [
        Alarm(
            name=name,
            watched=metric,
            threshold=threshold,
            points=SUSTAINED,
            missing=Missing.UNKNOWN,
            setting=setting,
            sentence=sentences[name],
            runbook=Runbook.CACHE_PRESSURE,
        )
        for name, metric, threshold, setting in limits
    ]
    evicted = Alarm(
        name="CacheEvictions",
        watched=of_cache(cache, "Evictions"),
        threshold=0,
        missing=Missing.UNKNOWN,
        setting="none: every one",
        severity=Severity.PAGE,
        sentence="The cache is full and drops what it holds, leases among it.",
        runbook=Runbook.CACHE_PRESSURE,
    )
    return [*sustained, evicted]
