"""What the product says about its work: one log line a delivery, and counts and times as metrics, flushed once a batch.

No payload, key or error text is ever among the fields. Dimensions are few: service, and service with
job type.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from typing import TYPE_CHECKING, Protocol

from shared.metrics import KINDS, Unit

if TYPE_CHECKING:
    from datetime import timedelta

NAMESPACE = "Tahan"
JOB_TYPE = "job_type"
NO_JOB_TYPE = "none"  # of a message that could not be read


class Telemetry(Protocol):
    """Where the pipeline reports to. Never raises, never blocks on a network."""

    def invocation(self, request_id: str) -> None:
        """Begin an invocation; its id stands in every line until the next."""
        ...

    def count(self, metric: str, job_type: str, number: int = 1) -> None:
        """Add to a count."""
        ...

    def took(self, metric: str, job_type: str, time: timedelta) -> None:
        """Record a duration."""
        ...

    def job(self, **fields: object) -> None:
        """Log how one delivery ended."""
        ...

    def warn(self, event: str, **fields: object) -> None:
        """Log something that an operator may want to see."""
        ...

    def flush(self) -> None:
        """Write the metrics collected."""
        ...


class Silent:
    """Reports to nobody; counts are kept for whoever asks."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.counts: defaultdict[tuple[str, str], int] = defaultdict(int)
        self.jobs: list[dict[str, object]] = []
        self.warnings: list[tuple[str, dict[str, object]]] = []

    def invocation(self, request_id: str) -> None:
        """Keep nothing."""

    def count(self, metric: str, job_type: str, number: int = 1) -> None:
        """Add to a count."""
        _refuse_unknown(metric, Unit.COUNT)
        self.counts[metric, job_type] += number

    def took(self, metric: str, job_type: str, time: timedelta) -> None:
        """Keep nothing."""
        del job_type, time
        _refuse_unknown(metric, Unit.MILLISECONDS)

    def job(self, **fields: object) -> None:
        """Keep the line."""
        _refuse_reserved(fields)
        self.jobs.append(fields)

    def warn(self, event: str, **fields: object) -> None:
        """Keep the warning."""
        _refuse_reserved(fields)
        self.warnings.append((event, fields))

    def flush(self) -> None:
        """Keep everything."""


def _refuse_unknown(metric: str, unit: Unit) -> None:
    """What is in no list is in no alarm and on no dashboard: the twin refuses it, so that every test notices."""
    if metric not in KINDS or KINDS[metric].unit is not unit:
        message = f"{metric!r} is no metric of unit {unit.value}: add it to shared/metrics.py."
        raise KeyError(message)


def _refuse_reserved(fields: dict[str, object]) -> None:
    """Python's logging refuses names that its own records have; so does the twin."""
    reserved = fields.keys() & (vars(logging.makeLogRecord({})).keys() | {"message", "asctime"})
    if reserved:
        message = f"Attempt to overwrite {sorted(reserved)} in LogRecord"
        raise KeyError(message)
