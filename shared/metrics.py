"""Every metric that the product writes: its unit, who writes it, what it says. No other name may be written.

Each is written under two sets of dimensions, of its service alone and of service and job type, so that an alarm watches one
metric a worker, however many job types that has. `docs/reference/metrics.md` is made from this list.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Unit(StrEnum):
    """Units, as CloudWatch spells them."""

    COUNT = "Count"
    MILLISECONDS = "Milliseconds"


class Writer(StrEnum):
    """Who writes a metric: the product's own functions by their service's name, and every worker by its own."""

    WORKER = "a worker"
    FRONT_DOOR = "front-door"
    RELAY = "outbox-relay"
    SWEEPER = "outbox-sweeper"
    COUNTER = "part-counter"
    LOOKOUT = "lookout"


@dataclass(frozen=True, slots=True)
class Kind:
    """A metric; `by_job_type` says whether its second set of dimensions tells job types apart."""

    name: str
    sentence: str
    writers: tuple[Writer, ...] = (Writer.WORKER,)
    unit: Unit = Unit.COUNT
    by_job_type: bool = True


_DOOR, _SWEEPER, _LOOKOUT = (Writer.FRONT_DOOR,), (Writer.SWEEPER,), (Writer.LOOKOUT,)
_SENDERS, _READERS = (Writer.RELAY, Writer.SWEEPER), (Writer.WORKER, Writer.FRONT_DOOR)
_KINDS = (
    # Flow
    Kind("succeeded", "deliveries whose job was committed and its tags invalidated"),
    Kind("failed", "of those, jobs that ended in a business failure that their client is told"),
    Kind("duplicates", "deliveries of a job that had ended before; nothing ran"),
    Kind("waiting", "deliveries whose job waits for its parts"),
    Kind("cancelled", "jobs that ended because their client asked for it", _READERS),
    Kind("latency", "from sending to completion", unit=Unit.MILLISECONDS),
    Kind("wait", "from sending to the first delivery", unit=Unit.MILLISECONDS),
    Kind("duration", "of a delivery, from its receipt to its end", unit=Unit.MILLISECONDS),
    Kind("accepted", "operations accepted over HTTP", _DOOR),
    Kind("replayed", "requests that repeated an accepted one", _DOOR),
    Kind("relayed", "messages sent from the outbox", _SENDERS, by_job_type=False),
    Kind("swept", "messages that the sweeper sent in the relay's place", _SWEEPER, by_job_type=False),
    Kind("parts_ended", "ends of parts that were counted", (Writer.COUNTER,), by_job_type=False),
    # Failing
    Kind("records_succeeded", "records of batches that were acknowledged without a failure", by_job_type=False),
    Kind("records_failed", "records of batches that were retried, dead-lettered or met a fault", by_job_type=False),
    Kind("retried", "attempts that failed and will be repeated"),
    Kind("dead_lettered", "jobs that no attempt can help"),
    Kind("unknown", "jobs whose outside effect may have happened"),
    Kind("refused", "requests answered with 400 or above", _DOOR, by_job_type=False),
    Kind("request_failed", "requests that met an error that nobody thought of", _DOOR, by_job_type=False),
    Kind("shed", "requests turned away while a job type is closed", _DOOR),
    Kind("rate_exceeded", "requests beyond their owner's rate", _DOOR, by_job_type=False),
    Kind(
        "rate_unavailable", "requests let through since nobody could tell their owner's rate", _DOOR, by_job_type=False
    ),
    Kind("parked", "messages of the outbox that can never be sent", _SENDERS, by_job_type=False),
    Kind("job_rescued", "jobs whose message was lost, sent anew", _SWEEPER, by_job_type=False),
    Kind("job_lost", "jobs whose message was lost again and again", _SWEEPER, by_job_type=False),
    Kind("visibility_expired", "attempts after one that ended without a word: crashed, killed or out of time"),
    # Waiting
    Kind("postponed", "deliveries that come back and cost no attempt"),
    Kind("stuck", "deliveries that come back after more than twice their objective"),
    Kind("sent_anew", "messages replaced by a fresh copy, for their wait or their many receipts", by_job_type=False),
    Kind(
        "outbox_lag",
        "how long the oldest message of the outbox waits; written every minute, also as zero",
        _SWEEPER,
        Unit.MILLISECONDS,
        by_job_type=False,
    ),
    # Locks
    Kind("contended", "deliveries postponed because another job has the lock"),
    Kind("lock_held", "how long the locks of a delivery were held", unit=Unit.MILLISECONDS),
    Kind("lease_lost", "deliveries postponed because their lease ran out or went to another"),
    Kind("claim_lost", "attempts whose job was taken over, so that the store refused their writes"),
    Kind("lease_unavailable", "deliveries that found no Redis to take a lease from"),
    # Dependencies
    Kind("dependency_calls", "calls of outside systems"),
    Kind("dependency_timeouts", "of those, calls without an answer, which may have been done"),
    Kind("dependency_unavailable", "of those, calls that were certainly not done"),
    Kind("turned_away_open", "calls not made since the breaker is open"),
    Kind("turned_away_rate", "calls not made since the rate is used up"),
    Kind("turned_away_concurrency", "calls not made since as many as may be are under way"),
    Kind("turned_away_retries", "calls not made since the retry budget is used up"),
    Kind("gate_unavailable", "calls whose bounds each process keeps for itself, Redis being gone"),
    Kind("queue_paused", "queues paused since a dependency is down", _LOOKOUT, by_job_type=False),
    Kind("queue_looking", "queues let go a little, to look whether it is up", _LOOKOUT, by_job_type=False),
    Kind("queue_freed", "queues freed since it is up", _LOOKOUT, by_job_type=False),
    Kind("brake_ended", "queues freed by the watchdog, since nobody renewed their brake", _SWEEPER, by_job_type=False),
    # Cache
    Kind("invalidation_failed", "jobs that are done and whose tags could not be dropped yet"),
    Kind("cache_hit", "reads answered by the cache", _READERS, by_job_type=False),
    Kind("cache_miss", "reads that found nothing and loaded it", _READERS, by_job_type=False),
    Kind("cache_stale_served", "reads given the old value while it is loaded anew", _READERS, by_job_type=False),
    Kind("cache_waited", "reads that waited for another's load", _READERS, by_job_type=False),
    Kind("cache_rebuilt", "loads that were kept", _READERS, by_job_type=False),
    Kind(
        "cache_refused",
        "loads that were not kept, since something was invalidated meanwhile",
        _READERS,
        by_job_type=False,
    ),
    Kind("cache_load_failed", "loads that failed", _READERS, by_job_type=False),
    Kind("cache_bypassed", "reads that went round the cache", _READERS, by_job_type=False),
    Kind("cache_shed", "reads turned away since too many go round the cache", _READERS, by_job_type=False),
    Kind("cache_mismatch", "sampled hits that differed from the source", _READERS, by_job_type=False),
    Kind("cache_put", "entries moved forward by a job", _READERS, by_job_type=False),
    Kind("cache_put_refused", "entries that were as new already", _READERS, by_job_type=False),
)
KINDS = {kind.name: kind for kind in _KINDS}


def most_metrics(job_types: int) -> int:
    """How many metrics a worker of so many job types can have at the most, whatever and whoever its jobs are about.

    Each is billed by itself. Those of a message that could not be read have a job type of their own.
    """
    mine = [kind for kind in KINDS.values() if Writer.WORKER in kind.writers]
    return sum(1 + (job_types + 1 if kind.by_job_type else 1) for kind in mine)
