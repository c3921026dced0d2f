"""Telemetry through Powertools: JSON log lines, and metrics in CloudWatch's embedded metric format (EMF) on stdout."""

from __future__ import annotations

import threading
from collections import defaultdict
from typing import TYPE_CHECKING

from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

from shared.telemetry import JOB_TYPE, NAMESPACE

if TYPE_CHECKING:
    from datetime import timedelta

# Values of one metric in one line: EMF takes 100, and Powertools flushes by itself at the hundredth.
MOST_VALUES = 99


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
        """Write one EMF line for each job type, more where a metric has many values."""
        with self._lock:
            counts, self._counts = self._counts, defaultdict(int)
            times, self._times = self._times, defaultdict(list)
        for job_type in sorted({job_type for job_type, _ in (*counts, *times)}):
            lines = [self._line(job_type)]
            for (kind, metric), number in counts.items():
                if kind == job_type:
                    lines[0].add_metric(name=metric, unit=MetricUnit.Count, value=number)
            for (kind, metric), values in times.items():
                for place, value in enumerate(values if kind == job_type else ()):
                    while place // MOST_VALUES >= len(lines):
                        lines.append(self._line(job_type))
                    lines[place // MOST_VALUES].add_metric(name=metric, unit=MetricUnit.Milliseconds, value=value)
            for line in lines:
                line.flush_metrics()

    def _line(self, job_type: str) -> EphemeralMetrics:
        line = EphemeralMetrics(namespace=NAMESPACE, service=self._service)
        line.add_dimension(name=JOB_TYPE, value=job_type)
        return line
