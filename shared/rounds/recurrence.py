"""Recurring jobs: which occurrence is due, and the message that asks for it.

An occurrence is posted under its own name, so that it is one message however often it is found. All occurrences of a job
share one key that is unique only while the job is active: one that comes while the last is still at it is a duplicate.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from cronsim import CronSim, CronSimError

from shared.errors import DeclarationError
from shared.message import Message
from shared.outbox import posting_of
from shared.rounds.each import try_each

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from shared.clock import Clock
    from shared.outbox import Outbox, Posting

LOOK_BACK = timedelta(hours=1)  # an occurrence that nobody could post for longer is left out
FIELDS = 5


@dataclass(frozen=True, slots=True)
class Recurrence:
    """A job type that recurs.

    Attributes:
        version: of its payload's schema.
        cron: minute, hour, day of month, month, day of week; in UTC, where no hour is missing or comes twice.
    """

    job_type: str
    version: int
    worker: str
    cron: str

    @property
    def written(self) -> str:
        """As a function's settings tell it, by its job type."""
        return f"{self.version} {self.cron}"

    @classmethod
    def read(cls, job_type: str, text: str, routes: Mapping[str, str]) -> Recurrence:
        """From a function's settings, with the worker of each job type."""
        version, _, cron = text.partition(" ")
        return cls(job_type, int(version), routes[job_type], cron)


@dataclass(frozen=True, slots=True)
class Recurring:
    """Posts the occurrences that are due."""

    outbox: Outbox
    recurrences: Sequence[Recurrence]
    clock: Clock

    def post_due(self) -> None:
        """Post the latest occurrence of each job type, if it is not older than an hour. Repeating it changes nothing.

        Raises:
            Unavailable: the store did not answer; the others are tried all the same.
        """
        try_each(partial(self._post_due, recurrence) for recurrence in self.recurrences)

    def _post_due(self, recurrence: Recurrence) -> None:
        now = self.clock.now()
        occurrence = latest(recurrence.cron, now)
        if now - occurrence <= LOOK_BACK:
            self.outbox.post(_posting(recurrence, occurrence, now), now)


def latest(cron: str, now: datetime) -> datetime:
    """The latest occurrence that is not after now."""
    minute = now.astimezone(UTC).replace(second=0, microsecond=0)
    return next(CronSim(cron, minute + timedelta(minutes=1), reverse=True))


_ANY = datetime(2026, 1, 1, tzinfo=UTC)


def check_cron(name: str, cron: str) -> None:
    """Refuse a schedule that is none, or never comes.

    Raises:
        DeclarationError: with the repair.
    """
    problem = f"it has {len(cron.split())} fields, not {FIELDS}" if len(cron.split()) != FIELDS else ""
    try:
        next(CronSim(cron, _ANY))
    except CronSimError as error:
        problem = problem or str(error)
    except StopIteration:
        problem = problem or "it never comes"
    if problem:
        message = (
            f"{name}: cron={cron!r} cannot be used ({problem}): give minute, hour, day of month, month and day of week, in"
            " UTC, like '*/15 * * * *'."
        )
        raise DeclarationError(message)


def _posting(recurrence: Recurrence, occurrence: datetime, now: datetime) -> Posting:
    name = f"recurring/{recurrence.job_type}/{occurrence.isoformat()}"
    key = f"recurring/{recurrence.job_type}"
    message = Message(recurrence.job_type, recurrence.version, key, "{}", job_id=name, enqueued_at=now)
    return posting_of(message, name, recurrence.worker)
