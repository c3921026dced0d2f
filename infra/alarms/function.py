"""The alarms of functions: of those that others call, and of those that the clock calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infra.alarms.alarm import Alarm, Runbook, Severity
from infra.alarms.metric import Metric, of_function, share

if TYPE_CHECKING:
    from datetime import timedelta

    from infra.stage.alarm_settings import AlarmSettings

SUSTAINED = (5, 5)


def function_alarms(subject: str, function: str, timeout: timedelta, settings: AlarmSettings) -> list[Alarm]:
    """Failed invocations, throttles, and times near its timeout.

    A batch whose records fail one by one is no failed invocation: see RecordFailures.
    """
    errors, invocations = of_function(function, "Errors"), of_function(function, "Invocations")
    shares = (
        ("ErrorsWarning", settings.error_warning_share, "error_warning_share", Severity.WARN),
        ("Errors", settings.error_share, "error_share", Severity.PAGE),
    )
    failing = [
        Alarm(
            name=name,
            watched=share(errors, invocations, settings.least_invocations),
            threshold=threshold,
            points=(3, 5),
            setting=f"{setting}, from least_invocations on",
            severity=severity,
            sentence=f"{subject} fails in over {threshold:g} % of its invocations.",
            runbook=Runbook.FUNCTION_ERRORS,
        )
        for name, threshold, setting, severity in shares
    ]
    return [
        *failing,
        Alarm(
            name="Throttled",
            watched=of_function(function, "Throttles"),
            threshold=settings.throttles,
            points=SUSTAINED,
            setting="throttles",
            sentence=f"{subject} is throttled.",
            runbook=Runbook.FUNCTION_THROTTLED,
        ),
        Alarm(
            name="NearTimeout",
            watched=of_function(function, "Duration", "p99"),
            threshold=timeout.total_seconds() * 1000 * settings.timeout_share / 100,
            points=(3, 5),
            setting="timeout_share of the function's timeout",
            sentence=f"{subject} takes over {settings.timeout_share:g} % of its timeout.",
            runbook=Runbook.FUNCTION_SLOW,
        ),
    ]


def version_alarm(subject: str, function: str, alias: str, version: str) -> Alarm:
    """The version that is being rolled out gets no second chance: one invocation of it that fails takes it back.

    A version that failed before it says nothing here, so that the one that repairs it can come.
    """
    dimensions = (("FunctionName", function), ("Resource", alias), ("ExecutedVersion", version))
    return Alarm(
        name="VersionErrors",
        watched=Metric("AWS/Lambda", "Errors", dimensions),
        threshold=0,
        setting="none: every one",
        sentence=f"The newest version of {subject} fails.",
        runbook=Runbook.FUNCTION_ERRORS,
    )


def clock_alarm(subject: str, function: str) -> Alarm:
    """A function that the clock calls once a minute fails too seldom for a share: every failure counts."""
    return Alarm(
        name="Errors",
        watched=of_function(function, "Errors"),
        threshold=0,
        points=(3, 5),
        setting="none: every one",
        sentence=f"{subject} fails, minute after minute.",
        runbook=Runbook.FUNCTION_ERRORS,
    )
