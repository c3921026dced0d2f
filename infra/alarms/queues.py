"""The alarms of a worker's two queues: dead letters, and messages that wait."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from infra.alarms.alarm import Alarm, Runbook, Severity
from infra.alarms.metric import DELETED, IN_FLIGHT, OLDEST, VISIBLE, Expression, of_queue, own
from infra.stage.choices import CANARY
from infra.stage.retention import SHORTEST_REST, SOURCE_RETENTION

if TYPE_CHECKING:
    from infra.stage.alarm_settings import AlarmSettings
    from shared.worker import Worker

FIVE_MINUTES = timedelta(minutes=5)
_LIMIT = "max_latency, at most queue_age_retention_share of the retention"


@dataclass(frozen=True, slots=True)
class Deployed:
    """What a worker's resources are called; tokens of CDK, mostly."""

    source: str
    dead_letters: str
    function: str


def queue_alarms(worker: Worker, deployed: Deployed, settings: AlarmSettings) -> list[Alarm]:
    """All alarms of the queues."""
    return [*_dead_letters(worker, deployed, settings), *_waiting(worker, deployed, settings)]


def _dead_letters(worker: Worker, deployed: Deployed, settings: AlarmSettings) -> list[Alarm]:
    queue = deployed.dead_letters
    visible, inflight, oldest = (of_queue(queue, name) for name in (VISIBLE, IN_FLIGHT, OLDEST))
    latest = SHORTEST_REST - settings.dead_letter_decision
    left, warned = settings.dead_letter_decision, settings.dead_letter_warning
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
            severity=Severity.WARN if worker.name == CANARY else Severity.PAGE,  # a smoke test makes them
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
                f"A dead letter of worker {worker.name} lies there for {_hours(latest)} h; it may be lost in {_hours(left)} h."
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


def _hours(time: timedelta) -> str:
    return f"{time.total_seconds() / 3600:g}"
