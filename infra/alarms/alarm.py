"""An alarm as data, and the one list of runbooks."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infra.alarms.metric import Expression, Metric


class Severity(StrEnum):
    """Who is to look."""

    PAGE = "page"  # somebody, now
    WARN = "warn"  # somebody, in working hours


class Missing(StrEnum):
    """What a minute without data means."""

    FINE = "notBreaching"  # of what speaks only when there is something to tell
    BREACHING = "breaching"  # of a heartbeat
    UNKNOWN = "missing"  # of what AWS tells all the time


class Runbook(StrEnum):
    """The pages of `docs/runbooks`: every alarm names one."""

    ATTEMPTS_LOST = "attempts-lost"
    CACHE_MISMATCH = "cache-mismatch"
    CACHE_MISSES = "cache-misses"
    CACHE_PRESSURE = "cache-pressure"
    CANARY = "canary"
    CONTENTION = "contention"
    DEAD_LETTER_AGE = "dead-letter-age"
    DEAD_LETTER_ARRIVAL = "dead-letter-arrival"
    DEAD_LETTERS_WAITING = "dead-letters-waiting"
    DEPENDENCY_DOWN = "dependency-down"
    DUPLICATES = "duplicates"
    FRONT_DOOR_ERRORS = "front-door-errors"
    FRONT_DOOR_SLOW = "front-door-slow"
    FUNCTION_ERRORS = "function-errors"
    FUNCTION_SLOW = "function-slow"
    FUNCTION_THROTTLED = "function-throttled"
    INVALIDATION_FAILURES = "invalidation-failures"
    JOBS_LOST = "jobs-lost"
    JOBS_STUCK = "jobs-stuck"
    OUTBOX_LAG = "outbox-lag"
    OUTBOX_PARKED = "outbox-parked"
    PART_COUNTER_ERRORS = "part-counter-errors"
    PART_COUNTER_GAVE_UP = "part-counter-gave-up"
    PART_COUNTER_LAG = "part-counter-lag"
    QUEUE_AGE = "queue-age"
    QUEUE_BACKLOG = "queue-backlog"
    RELAY_ERRORS = "relay-errors"
    RELAY_GAVE_UP = "relay-gave-up"
    RELAY_LAG = "relay-lag"
    RETRIES = "retries"
    STORE_ERRORS = "store-errors"
    UNKNOWN_OUTCOMES = "unknown-outcomes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """A metric or expression that rings above its threshold.

    Attributes:
        name: in the words of the code, once in its group.
        watched: what it looks at.
        threshold: above which a period breaches; None where `band` says it.
        band: how far over the baseline that CloudWatch learns, in standard deviations.
        at_least: a period breaches at the threshold already.
        points: how many periods of how many last ones must breach.
        setting: what the threshold follows from: fields of `AlarmSettings`, or a declaration.
        sentence: what it saw; names whoever it is about.
        tells: whether it speaks for itself, or is a part of another.
    """

    name: str
    watched: Metric | Expression
    threshold: float | None = None
    band: float | None = None
    at_least: bool = False
    points: tuple[int, int] = (1, 1)
    missing: Missing = Missing.FINE
    setting: str
    severity: Severity = Severity.WARN
    sentence: str
    runbook: Runbook
    tells: bool = True

    @property
    def description(self) -> str:
        """What whoever is told reads first."""
        return _described(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Both:
    """An alarm that rings while two others do, which are quiet by themselves: a long window and a short one."""

    name: str
    long: Alarm
    short: Alarm
    setting: str
    severity: Severity = Severity.WARN
    sentence: str
    runbook: Runbook

    @property
    def description(self) -> str:
        """What whoever is told reads first."""
        return _described(self)


def _described(alarm: Alarm | Both) -> str:
    return f"[{alarm.severity.value}] {alarm.sentence} Runbook: docs/runbooks/{alarm.runbook.value}.md"
