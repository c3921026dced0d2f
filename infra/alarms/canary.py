"""The alarm of the canary: an operation a minute through the whole stack, whose time from asking to the end is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infra.alarms.alarm import Alarm, Missing, Runbook, Severity

if TYPE_CHECKING:
    from infra.alarms.metric import Metric
    from infra.stage.alarm_settings import AlarmSettings


def canary_alarm(took: Metric, settings: AlarmSettings) -> Alarm:
    """Rings when operations take too long, or when nobody tells.

    Args:
        took: milliseconds from asking to the end; told when one ends, so that silence is one that does not.
        settings: has the patience.
    """
    patience = settings.canary_patience
    return Alarm(
        name="Canary",
        watched=took.by("Maximum"),
        threshold=patience.total_seconds() * 1000,
        at_least=True,
        points=(2, 3),
        missing=Missing.BREACHING,
        setting="canary_patience",
        severity=Severity.PAGE,
        sentence=f"An operation of the canary has not ended within {patience.total_seconds():g} s, or the canary is silent.",
        runbook=Runbook.CANARY,
    )
