"""The alarms of the front door: what its clients see, and its reads through the cache."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from infra.alarms.alarm import Alarm, Both, Runbook, Severity
from infra.alarms.function import SUSTAINED, function_alarms
from infra.alarms.metric import of_api, own, share, share_of_all
from shared.metrics import Writer

if TYPE_CHECKING:
    from infra.stage.alarm_settings import AlarmSettings


def door_alarms(api: str, function: str, timeout: timedelta, settings: AlarmSettings) -> list[Alarm | Both]:
    """All alarms of the front door."""
    failed, requests = of_api(api, "5xx"), of_api(api, "Count")
    latency = settings.api_latency.total_seconds()
    return [
        Alarm(
            name="ServerErrors",
            watched=share(failed, requests, settings.least_requests),
            threshold=settings.api_error_share,
            points=(3, 5),
            setting="api_error_share, from least_requests on",
            severity=Severity.PAGE,
            sentence=f"The front door answers over {settings.api_error_share:g} % of its clients with errors of ours.",
            runbook=Runbook.FRONT_DOOR_ERRORS,
        ),
        Alarm(
            name="Latency",
            watched=of_api(api, "Latency", "p99"),
            threshold=latency * 1000,
            points=SUSTAINED,
            setting="api_latency",
            sentence=f"One answer of the front door in a hundred takes over {latency:g} s.",
            runbook=Runbook.FRONT_DOOR_SLOW,
        ),
        _burn(api, settings, "FastBurn", settings.fast_burn, "fast_burn", timedelta(hours=1), timedelta(minutes=5)),
        _burn(api, settings, "SlowBurn", settings.slow_burn, "slow_burn", timedelta(hours=6), timedelta(minutes=30)),
        *function_alarms("The front door", function, timeout, settings),
        *_reads(settings),
    ]


def _burn(  # noqa: PLR0913, PLR0917 - one window of the objective
    api: str, settings: AlarmSettings, name: str, burn: float, setting: str, long: timedelta, short: timedelta
) -> Both:
    """The budget of the objective is spent too fast: over a long window, and still so over a short one."""
    sentence = (
        f"The front door spends its budget of {100 - settings.objective:.4g} % errors {burn:g} times too fast for"
        f" {long.total_seconds() / 3600:g} h."
    )

    def over(window: timedelta, part: str) -> Alarm:
        return Alarm(
            name=f"{name}{part}",
            watched=share(of_api(api, "5xx"), of_api(api, "Count"), settings.least_requests).over(window),
            threshold=burn * (100 - settings.objective),
            setting=f"{setting} of objective, from least_requests on",
            severity=Severity.PAGE,
            sentence=sentence,
            runbook=Runbook.FRONT_DOOR_ERRORS,
            tells=False,
        )

    return Both(
        name=name,
        long=over(long, "Long"),
        short=over(short, "Short"),
        setting=f"{setting} of objective, from least_requests on",
        severity=Severity.PAGE,
        sentence=sentence,
        runbook=Runbook.FRONT_DOOR_ERRORS,
    )


def _reads(settings: AlarmSettings) -> list[Alarm]:
    hit, miss = (own(Writer.FRONT_DOOR, f"cache_{name}") for name in ("hit", "miss"))
    return [
        Alarm(
            name="CacheMisses",
            watched=share_of_all(miss, {"hit": hit}, least=settings.least_reads, failures=1),
            threshold=settings.cache_miss_share,
            points=(3, 5),
            setting="cache_miss_share, from least_reads on",
            sentence=f"Over {settings.cache_miss_share:g} % of the reads find nothing in the cache.",
            runbook=Runbook.CACHE_MISSES,
        ),
        Alarm(
            name="CacheMismatches",
            watched=own(Writer.FRONT_DOOR, "cache_mismatch").over(timedelta(minutes=5)),
            threshold=settings.cache_mismatches,
            setting="cache_mismatches",
            severity=Severity.PAGE,
            sentence="The cache held something else than the database, and nothing explains it.",
            runbook=Runbook.CACHE_MISMATCH,
        ),
    ]
