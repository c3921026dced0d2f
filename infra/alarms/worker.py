"""The alarms of a worker: its two queues, its function, what its jobs say of themselves. One metric a worker, not one a job type."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from infra.alarms.alarm import Alarm, Runbook, Severity
from infra.alarms.function import function_alarms
from infra.alarms.metric import (
    Expression,
    of_function,
    own,
    share_of_all,
    total,
)
from infra.alarms.queues import Deployed, queue_alarms

if TYPE_CHECKING:
    from infra.stage.alarm_settings import AlarmSettings
    from shared.worker import Worker

FIVE_MINUTES = timedelta(minutes=5)


def worker_alarms(worker: Worker, deployed: Deployed, settings: AlarmSettings) -> list[Alarm]:
    """All alarms of a worker."""
    return [
        *queue_alarms(worker, deployed, settings),
        *_failing(worker, settings),
        *_locks(worker, settings),
        *_function(worker, deployed, settings),
    ]


def _failing(worker: Worker, settings: AlarmSettings) -> list[Alarm]:
    name, floor = worker.name, _floor(settings)
    done, retried, dead = (own(name, metric) for metric in ("succeeded", "retried", "dead_lettered"))
    alarms = [
        Alarm(
            name="Retries",
            watched=share_of_all(retried, {"done": done, "dead": dead}, **floor).over(FIVE_MINUTES),
            threshold=settings.retry_share,
            setting="retry_share, from least_jobs and least_failures on",
            sentence=f"Over {settings.retry_share:g} % of the attempts of worker {name} are retried.",
            runbook=Runbook.RETRIES,
        ),
        Alarm(
            name="RecordFailures",
            watched=share_of_all(own(name, "records_failed"), {"done": own(name, "records_succeeded")}, **floor),
            threshold=settings.record_failure_share,
            points=(3, 5),
            setting="record_failure_share, from least_jobs and least_failures on",
            sentence=f"Over {settings.record_failure_share:g} % of the records in batches of worker {name} fail.",
            runbook=Runbook.RETRIES,
        ),
        Alarm(
            name="Duplicates",
            watched=share_of_all(own(name, "duplicates"), {"done": done}, **floor).over(FIVE_MINUTES),
            threshold=settings.duplicate_share,
            setting="duplicate_share, from least_jobs and least_failures on",
            sentence=f"Over {settings.duplicate_share:g} % of the deliveries of worker {name} are duplicates.",
            runbook=Runbook.DUPLICATES,
        ),
        Alarm(
            name="UnknownOutcomes",
            watched=own(name, "unknown"),
            threshold=settings.unknown_outcomes,
            at_least=True,
            setting="unknown_outcomes",
            sentence=f"Of a job of worker {name} nobody knows whether its effect outside happened.",
            runbook=Runbook.UNKNOWN_OUTCOMES,
        ),
        Alarm(
            name="InvalidationFailures",
            watched=own(name, "invalidation_failed"),
            threshold=settings.invalidation_failures,
            points=(3, 5),
            setting="invalidation_failures",
            sentence=f"Jobs of worker {name} are done and what they changed cannot be invalidated.",
            runbook=Runbook.INVALIDATION_FAILURES,
        ),
    ]
    return [*alarms, _dependencies(worker, settings)] if worker.dependencies else alarms


def _dependencies(worker: Worker, settings: AlarmSettings) -> Alarm:
    """While a breaker is open hardly anybody calls: calls that it turned away have failed as well."""
    failed = {"timeouts": "dependency_timeouts", "down": "dependency_unavailable", "shut": "turned_away_open"}
    metrics = {name: own(worker.name, metric) for name, metric in {**failed, "calls": "dependency_calls"}.items()}
    whole = "FILL(calls, 0) + FILL(shut, 0)"
    bad = " + ".join(f"FILL({name}, 0)" for name in failed)
    return Alarm(
        name="DependencyFailures",
        watched=Expression(f"IF({whole} >= {settings.least_calls}, 100 * ({bad}) / ({whole}), 0)", metrics),
        threshold=settings.dependency_share,
        points=(3, 5),
        setting="dependency_share, from least_calls on",
        sentence=(
            f"Over {settings.dependency_share:g} % of the calls of worker {worker.name} to"
            f" {' or '.join(each.name for each in worker.dependencies)} fail."
        ),
        runbook=Runbook.DEPENDENCY_DOWN,
    )


def _locks(worker: Worker, settings: AlarmSettings) -> list[Alarm]:
    name = worker.name
    longest = max(job.timeout for job in worker.jobs) * (settings.lock_share / 100)
    lost = {metric: own(name, metric) for metric in ("visibility_expired", "claim_lost", "lease_lost")}
    return [
        Alarm(
            name="Contention",
            watched=share_of_all(own(name, "contended"), {"done": own(name, "succeeded")}, **_floor(settings)),
            threshold=settings.contention_share,
            points=(3, 5),
            setting="contention_share, from least_jobs and least_failures on",
            sentence=f"Over {settings.contention_share:g} % of the deliveries of worker {name} wait for a lock.",
            runbook=Runbook.CONTENTION,
        ),
        Alarm(
            name="LockHeld",
            watched=own(name, "lock_held", "Maximum"),
            threshold=longest.total_seconds() * 1000,
            setting="lock_share of the longest timeout",
            sentence=f"A job of worker {name} held a lock for longer than {longest.total_seconds():g} s.",
            runbook=Runbook.CONTENTION,
        ),
        Alarm(
            name="AttemptsLost",
            watched=total(lost).over(FIVE_MINUTES),
            threshold=settings.lost_attempts,
            setting="lost_attempts",
            severity=Severity.PAGE,
            sentence=f"Attempts of worker {name} crash, run out of time, or are overtaken by others.",
            runbook=Runbook.ATTEMPTS_LOST,
        ),
    ]


def _function(worker: Worker, deployed: Deployed, settings: AlarmSettings) -> list[Alarm]:
    subject = f"The function of worker {worker.name}"
    least = settings.duration_least.total_seconds() * 1000
    alarms = [
        *function_alarms(subject, deployed.function, worker.function_timeout, settings),
        Alarm(
            name="DurationJump",
            watched=Expression(
                f"IF(duration >= {least:g}, duration, 0)", {"duration": own(worker.name, "duration", "p95")}
            ),
            band=settings.duration_band,
            points=(3, 5),
            setting="duration_band, from duration_least on",
            sentence=f"Jobs of worker {worker.name} take far longer than usual.",
            runbook=Runbook.FUNCTION_SLOW,
        ),
    ]
    if worker.reserved_concurrency is None:
        return alarms
    most = worker.reserved_concurrency * settings.concurrency_share / 100
    running = Alarm(
        name="Concurrency",
        watched=of_function(deployed.function, "ConcurrentExecutions", "Maximum"),
        threshold=most,
        points=(3, 3),
        setting="concurrency_share of reserved_concurrency",
        sentence=f"{subject} runs over {most:g} times at once; {worker.reserved_concurrency} are reserved.",
        runbook=Runbook.FUNCTION_THROTTLED,
    )
    return [*alarms, running]


def _floor(settings: AlarmSettings) -> dict[str, int]:
    return {"least": settings.least_jobs, "failures": settings.least_failures}
