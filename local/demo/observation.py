"""What is to be seen from outside while the stack works, as values: queues, tables, cache, the workers' words, the ledger."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message in the dead-letter queue, with what stands beside it; None is what does not stand there.

    Attributes:
        first: when the job first failed.
        last: when it failed for good.
        read_at: when we received it.
    """

    body: str
    read_at: datetime
    reason: str | None = None
    attempts: int | None = None
    error: str | None = None
    first: datetime | None = None
    last: datetime | None = None


@dataclass(frozen=True, slots=True)
class OrderSeen:
    """An order in its table."""

    status: str
    charge_id: str | None = None


@dataclass(frozen=True, slots=True)
class JobSeen:
    """A job record."""

    status: str
    attempts: int


@dataclass(frozen=True, slots=True)
class ChargeSeen:
    """A charge in the provider's ledger: what was asked for, and the name that the provider gave it."""

    charge_id: str
    amount: str
    currency: str
    order_id: str


@dataclass(frozen=True, slots=True)
class PostingSeen:
    """An item of the outbox: the job that it asks for, about which order, and whether it was sent."""

    job: tuple[str, str]
    order_id: str | None
    is_sent: bool


@dataclass(frozen=True, slots=True)
class Times:
    """When a job was to run at the earliest, and when it ended."""

    run_at: datetime
    ended_at: datetime


@dataclass(frozen=True, slots=True)
class Word:
    """What a worker's log line says of one delivery: its result, and why it was postponed."""

    result: str
    because: str | None = None


@dataclass(frozen=True, slots=True)
class Observation:
    """One look at everything.

    Attributes:
        begun: when we first looked.
        waiting: messages on the queue that nobody holds, delayed ones included.
        in_flight: messages held by a consumer or waiting for another attempt.
        dead: messages on the dead-letter queue by its own count.
        dead_letters: those read from it.
        orders: by order id.
        jobs: by job type and idempotency key.
        postings: all items of the outbox.
        charges: by intent.
        notices: the versions of which a notice was sent, by invoice.
        requests: how many requests to charge the provider has had, by intent.
        shortest_waits: seconds between two requests for one intent, by intent.
        provoked: intents for which the provider has done all the harm it was to do.
        killed: processes that the provider killed.
        was_cached: cache tags under which something was kept at some look.
        cached: cache tags under which something was kept when Redis last answered.
        paid_without_redis: orders that were seen paid while Redis was away.
        words: the log lines about each message, by message id. A killed worker's are lost.
        times: of jobs for later that have ended, by job type and idempotency key.
        operations: the status of each, as its owner is told, by operation id.
        first_reads: the ETag of what each user reads, before anything was sent, by user and path.
        reads: the same as it was read last.
        done_without_relay: jobs that were seen to have ended while the relay was off.
    """

    begun: datetime = LONG_AGO
    waiting: int = 0
    in_flight: int = 0
    dead: int = 0
    dead_letters: tuple[DeadLetter, ...] = ()
    orders: Mapping[str, OrderSeen] = field(default_factory=dict)
    jobs: Mapping[tuple[str, str], JobSeen] = field(default_factory=dict)
    postings: tuple[PostingSeen, ...] = ()
    charges: Mapping[str, tuple[ChargeSeen, ...]] = field(default_factory=dict)
    notices: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    requests: Mapping[str, int] = field(default_factory=dict)
    shortest_waits: Mapping[str, float] = field(default_factory=dict)
    provoked: frozenset[str] = frozenset()
    killed: int = 0
    was_cached: frozenset[str] = frozenset()
    cached: frozenset[str] = frozenset()
    paid_without_redis: frozenset[str] = frozenset()
    words: Mapping[str, tuple[Word, ...]] = field(default_factory=dict)
    times: Mapping[tuple[str, str], Times] = field(default_factory=dict)
    operations: Mapping[str, str] = field(default_factory=dict)
    first_reads: Mapping[tuple[str, str], str | None] = field(default_factory=dict)
    reads: Mapping[tuple[str, str], str | None] = field(default_factory=dict)
    done_without_relay: frozenset[tuple[str, str]] = frozenset()

    @property
    def is_at_rest(self) -> bool:
        """Whether nothing is on the way any more."""
        return self.waiting == self.in_flight == 0
