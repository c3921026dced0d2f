"""The alarms of a worker: its two queues, its function, what its jobs say of themselves. One metric a worker, not one a job type."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from infra.alarms.alarm import Alarm, Runbook, Severity
from infra.alarms.function import function_alarms
from infra.alarms.metric import (
    DELETED,
    IN_FLIGHT,
    OLDEST,
    VISIBLE,
    Expression,
    of_function,
    of_queue,
    own,
    share_of_all,
    total,
)
from infra.retention import SHORTEST_REST, SOURCE_RETENTION

if TYPE_CHECKING:
    from infra.alarm_settings import AlarmSettings
    from shared.worker import Worker

FIVE_MINUTES = timedelta(minutes=5)
_LIMIT = "max_latency, at most queue_age_retention_share of the retention"


@dataclass(frozen=True, slots=True)
class Deployed:
    """What a worker's resources are called; tokens of CDK, mostly."""

    source: str
    dead_letters: str
    function: str


def worker_alarms(worker: Worker, deployed: Deployed, settings: AlarmSettings) -> list[Alarm]:
    """All alarms of a worker."""
    return [
        *_dead_letters(worker, deployed, settings),
        *_waiting(worker, deployed, settings),
        *_failing(worker, settings),
        *_locks(worker, settings),
        *_function(worker, deployed, settings),
    ]


def _dead_letters(worker: Worker, deployed: Deployed, settings: AlarmSettings) -> list[Alarm]:
    queue = deployed.dead_letters
    visible, inflight, oldest = (of_queue(queue, name) for name in (VISIBLE, IN_FLIGHT, OLDEST))
    latest = SHORTEST_REST - settings.dead_letter_decision
    days, warned = settings.dead_letter_decision.days, settings.dead_letter_warning
    # Reading a message hides it, so what is in flight counts too; a queue that was idle says nothing, which is zero. What
    # came while another was discarded is no rise: the consumer's own word counts beside it.
    risen = "IF(DIFF(FILL(visible, 0) + FILL(inflight, 0)) > 0, 1, 0) + FILL(dead, 0)"
    dead = own(worker.name, "dead_lettered")
    return [
        Alarm(
            name="DeadLetterArrival",
            watched=Expression(risen, {"visible": visible, "inflight": inflight, "dead": dead}),
            threshold=0,
            points=(1, 3),  # SQS's metrics come late: a minute is looked at again twice, when its data may have come
            setting="none: every one",
            severity=Severity.PAGE,
            sentence=f"A message of worker {worker.name} was dead-lettered just now.",
            runbook=Runbook.DEAD_LETTER_ARRIVAL,
        ),
        Alarm(
            name="DeadLettersWaiting",
            watched=visible,
            threshold=1,
            at_least=True,
            setting="none: every one",
            sentence=f"Dead letters of worker {worker.name} wait for a decision.",
            runbook=Runbook.DEAD_LETTERS_WAITING,
        ),
        Alarm(
            name="DeadLetterAgeWarning",
            watched=oldest.over(FIVE_MINUTES),
            threshold=warned.total_seconds(),
            setting="dead_letter_warning",
            sentence=f"A dead letter of worker {worker.name} lies there for {_hours(warned)} h and nobody has decided.",
            runbook=Runbook.DEAD_LETTER_AGE,
        ),
        Alarm(
            name="DeadLetterAge",
            watched=oldest.over(FIVE_MINUTES),
            threshold=latest.total_seconds(),
            setting="dead_letter_decision, before the queue's retention ends",
            severity=Severity.PAGE,
            sentence=(
                f"A dead letter of worker {worker.name} lies there for {latest.days} days; it may be lost in {days}."
            ),
            runbook=Runbook.DEAD_LETTER_AGE,
        ),
    ]


def _waiting(worker: Worker, deployed: Deployed, settings: AlarmSettings) -> list[Alarm]:
    visible, inflight, oldest = (of_queue(deployed.source, name) for name in (VISIBLE, IN_FLIGHT, OLDEST))
    deleted = of_queue(deployed.source, DELETED, "Sum")
    retained = SOURCE_RETENTION * (settings.queue_age_retention_share / 100)
    objective = min(worker.max_latency, retained).total_seconds()
    warned = objective * settings.queue_age_warning_share / 100
    minutes = settings.drain_time.total_seconds() / 60
    return [
        Alarm(
            name="QueueAgeWarning",
            watched=oldest,
            threshold=warned,
            points=(3, 5),
            setting=f"queue_age_warning_share of {_LIMIT}",
            sentence=f"The oldest message of worker {worker.name} waits for {warned:g} s; its objective is {objective:g} s.",
            runbook=Runbook.QUEUE_AGE,
        ),
        Alarm(
            name="QueueAge",
            watched=oldest,
            threshold=objective,
            points=(3, 5),
            setting=_LIMIT,
            severity=Severity.PAGE,
            sentence=f"The oldest message of worker {worker.name} waits longer than its objective of {objective:g} s.",
            runbook=Runbook.QUEUE_AGE,
        ),
        Alarm(
            name="NoProgress",
            watched=Expression(f"IF(age > {objective:g} AND deleted < 1, 1, 0)", {"age": oldest, "deleted": deleted}),
            threshold=0,
            points=(3, 5),
            setting=_LIMIT,
            severity=Severity.PAGE,
            sentence=f"Messages of worker {worker.name} wait longer than {objective:g} s, and nothing is completed.",
            runbook=Runbook.QUEUE_BACKLOG,
        ),
        Alarm(
            name="DepthOverBaseline",
            watched=Expression(f"IF(visible >= {settings.depth_least}, visible, 0)", {"visible": visible}),
            band=settings.depth_band,
            points=(10, 10),
            setting="depth_band, from depth_least on",
            sentence=f"The queue of worker {worker.name} has been far deeper than usual for ten minutes.",
            runbook=Runbook.QUEUE_BACKLOG,
        ),
        Alarm(
            name="DrainTime",
            # Nothing deleted is no number: that is NoProgress.
            watched=Expression("visible / deleted", {"visible": visible, "deleted": deleted}),
            threshold=minutes,
            points=(5, 5),
            setting="drain_time",
            sentence=f"At its present speed worker {worker.name} needs over {minutes:g} minutes for its backlog.",
            runbook=Runbook.QUEUE_BACKLOG,
        ),
        Alarm(
            name="InFlight",
            watched=inflight,
            threshold=settings.in_flight,
            points=(3, 3),
            setting="in_flight",
            severity=Severity.PAGE,
            sentence=f"Worker {worker.name} has over {settings.in_flight} messages in flight; SQS takes 120000.",
            runbook=Runbook.QUEUE_BACKLOG,
        ),
        Alarm(
            name="JobsStuck",
            watched=own(worker.name, "stuck"),
            threshold=settings.stuck,
            points=(1, 1),
            setting="stuck, after twice max_latency",
            severity=Severity.PAGE,
            sentence=f"A job of worker {worker.name} came back after more than twice its objective.",
            runbook=Runbook.JOBS_STUCK,
        ),
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


def _hours(time: timedelta) -> str:
    return f"{time.total_seconds() / 3600:g}"
