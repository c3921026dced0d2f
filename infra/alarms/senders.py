"""The alarms of whatever reads a stream, of the sweeper and of the lookout."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from infra.alarms.alarm import Alarm, Missing, Runbook, Severity
from infra.alarms.function import clock_alarm
from infra.alarms.metric import VISIBLE, of_function, of_queue, own
from shared.metrics import Writer

if TYPE_CHECKING:
    from infra.stage.alarm_settings import AlarmSettings


@dataclass(frozen=True, slots=True)
class Reader:
    """A reader of a stream, in the words of its alarms; `parks` is its service's name where it parks messages."""

    name: str
    waits: str
    given_up: str
    errors: Runbook
    lag: Runbook
    gave_up: Runbook
    parks: Writer | None = None


RELAY = Reader(
    "outbox relay",
    "committed messages wait to be sent",
    "their messages are left to the sweeper",
    Runbook.RELAY_ERRORS,
    Runbook.RELAY_LAG,
    Runbook.RELAY_GAVE_UP,
    Writer.RELAY,
)
PART_COUNTER = Reader(
    "part counter",
    "jobs whose parts have ended wait to go on",
    "their jobs are left to the sweeper",
    Runbook.PART_COUNTER_ERRORS,
    Runbook.PART_COUNTER_LAG,
    Runbook.PART_COUNTER_GAVE_UP,
)


def reader_alarms(reader: Reader, function: str, failures: str, settings: AlarmSettings) -> list[Alarm]:
    """Errors, lag, and what it gave up."""
    lags = (
        ("LagWarning", settings.stream_lag_warning, "stream_lag_warning", Severity.WARN),
        ("Lag", settings.stream_lag, "stream_lag", Severity.PAGE),
    )
    alarms = [
        Alarm(
            name="Errors",
            watched=of_function(function, "Errors"),
            threshold=0,
            points=(3, 5),
            setting="none: every one",
            severity=Severity.PAGE,
            sentence=f"The {reader.name} failed; {reader.waits}.",
            runbook=reader.errors,
        ),
        *(
            Alarm(
                name=name,
                watched=of_function(function, "IteratorAge", "Maximum"),
                threshold=lag.total_seconds() * 1000,
                points=(3, 3),
                setting=setting,
                severity=severity,
                sentence=f"The {reader.name} lags more than {lag.total_seconds():g} s behind the table.",
                runbook=reader.lag,
            )
            for name, lag, setting, severity in lags
        ),
        Alarm(
            name="GaveUp",
            watched=of_queue(failures, VISIBLE),
            threshold=1,
            at_least=True,
            setting="none: every one",
            severity=Severity.PAGE,
            sentence=f"The {reader.name} gave up on some items; {reader.given_up}.",
            runbook=reader.gave_up,
        ),
    ]
    return alarms if reader.parks is None else [*alarms, _parked(reader.parks)]


def sweeper_alarms(function: str, settings: AlarmSettings) -> list[Alarm]:
    """Of the sweeper, which tells its lag every minute, also when nothing waits: silence is an alarm."""
    lag = settings.outbox_lag.total_seconds()
    return [
        Alarm(
            name="OutboxLag",
            watched=own(Writer.SWEEPER, "outbox_lag", "Maximum"),
            threshold=lag * 1000,
            points=(2, 3),
            missing=Missing.BREACHING,
            setting="outbox_lag",
            severity=Severity.PAGE,
            sentence=f"A committed message waits for more than {lag:g} s to be sent, or the sweeper is silent.",
            runbook=Runbook.OUTBOX_LAG,
        ),
        Alarm(
            name="JobsLost",
            watched=own(Writer.SWEEPER, "job_lost"),
            threshold=0,
            setting="none: every one",
            severity=Severity.PAGE,
            sentence="A job lost its message again and again, and was dead-lettered without one.",
            runbook=Runbook.JOBS_LOST,
        ),
        _parked(Writer.SWEEPER),
        clock_alarm("The outbox sweeper", function),
    ]


def lookout_alarms(function: str) -> list[Alarm]:
    """Of the lookout, without which no queue is braked; the sweeper's watchdog frees those that are."""
    return [clock_alarm("The lookout", function)]


def _parked(service: Writer) -> Alarm:
    """What cannot be sent is parked, and nobody tries it again by himself."""
    return Alarm(
        name="Parked",
        watched=own(service, "parked"),
        threshold=0,
        setting="none: every one",
        severity=Severity.PAGE,
        sentence="A committed message can never be sent as it is; it is parked in the outbox with its reason.",
        runbook=Runbook.OUTBOX_PARKED,
    )
