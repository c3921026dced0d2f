"""Telemetry through Powertools: JSON log lines, and metrics in CloudWatch's embedded metric format (EMF) on stdout."""

from __future__ import annotations

import threading
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

from shared.telemetry import JOB_TYPE, NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

# Metrics in one line, and values of each: EMF takes 100, and Powertools flushes by itself at the hundredth.
MOST_IN_LINE = 99
_T = TypeVar("_T")


class PowertoolsTelemetry:
    """Powertools' logger, and its metrics by job type. Threads report to one buffer; Powertools' metrics take one thread."""

    def __init__(self, service: str) -> None:
        """Report for this worker."""
        self._service = service
        self._logger = Logger(service=service)
        self._lock = threading.Lock()
        self._counts: defaultdict[tuple[str, str], int] = defaultdict(int)
        self._times: defaultdict[tuple[str, str], list[float]] = defaultdict(list)

    def invocation(self, request_id: str) -> None:
        """Begin an invocation."""
        self._logger.append_keys(function_request_id=request_id)

    def count(self, metric: str, job_type: str, number: int = 1) -> None:
        """Add to a count."""
        with self._lock:
            self._counts[job_type, metric] += number

    def took(self, metric: str, job_type: str, time: timedelta) -> None:
        """Record a duration in milliseconds."""
        with self._lock:
            self._times[job_type, metric].append(time.total_seconds() * 1000)

    def job(self, **fields: object) -> None:
        """Log how one delivery ended."""
        self._logger.info("job", extra=fields)

    def warn(self, event: str, **fields: object) -> None:
        """Log something that an operator may want to see."""
        self._logger.warning(event, extra=fields)

    def flush(self) -> None:
        """Write what was collected: one EMF line for each job type, more where there is more than a line holds."""
        with self._lock:
            counts, self._counts = self._counts, defaultdict(int)
            times, self._times = self._times, defaultdict(list)
        pieces: defaultdict[tuple[str, int], list[_Piece]] = defaultdict(list)
        for (job_type, metric), number in counts.items():
            pieces[job_type, 0].append(_Piece(metric, MetricUnit.Count, [number]))
        for (job_type, metric), values in times.items():
            for place, some in enumerate(_parts(values, MOST_IN_LINE)):
                pieces[job_type, place].append(_Piece(metric, MetricUnit.Milliseconds, some))
        for (job_type, _), found in sorted(pieces.items()):
            for part in _parts(found, MOST_IN_LINE):
                self._write(job_type, part)

    def _write(self, job_type: str, pieces: Sequence[_Piece]) -> None:
        """Write a line under both sets of dimensions: of service and job type, and of the service alone."""
        line = EphemeralMetrics(namespace=NAMESPACE, service=self._service)
        line.add_dimension(name=JOB_TYPE, value=job_type)
        line.add_dimensions(service=self._service)
        for piece in pieces:
            for value in piece.values:
                line.add_metric(name=piece.metric, unit=piece.unit, value=value)
        line.flush_metrics()


@dataclass(frozen=True, slots=True)
class _Piece:
    """Some values of one metric: as many as go into a line."""

    metric: str
    unit: MetricUnit
    values: Sequence[float]


def _parts(values: Sequence[_T], most: int) -> list[Sequence[_T]]:
    return [values[start : start + most] for start in range(0, len(values), most)]
