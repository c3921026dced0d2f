"""The alarms that every function has: those that are called by nobody else's clock included."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infra.alarms.alarm import Alarm, Runbook, Severity
from infra.alarms.metric import of_function, share

if TYPE_CHECKING:
    from infra.alarm_settings import AlarmSettings

SUSTAINED = (5, 5)


def function_alarms(subject: str, function: str, settings: AlarmSettings) -> list[Alarm]:
    """Failed invocations, as a share of all. A batch whose records fail one by one is none: see RecordFailures."""
    errors, invocations = of_function(function, "Errors"), of_function(function, "Invocations")
    shares = (
        ("ErrorsWarning", settings.error_warning_share, "error_warning_share", Severity.WARN),
        ("Errors", settings.error_share, "error_share", Severity.PAGE),
    )
    return [
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
