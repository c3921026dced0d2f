"""Finds jobs that have not ended and whose message is gone: lost by SQS's retention, or taken away by its own redrive.

Every accepted job ends, or is visible: such a job is sent anew from its record, a few times, and then dead-lettered.
A second copy of a message that is still there after all is harmless: one key is one job.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from shared.errors import ClaimLost, Refused
from shared.failpoints import Failpoint, failpoint
from shared.job_record import LOST_AFTER, Status
from shared.outcome import Failure
from shared.rounds.again import posting_again
from shared.telemetry import NO_JOB_TYPE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime, timedelta

    from shared.clock import Clock
    from shared.job_record import JobView
    from shared.outbox import Outbox
    from shared.rounds.counting import Counting
    from shared.telemetry import Telemetry

LOST = "message-lost"  # the reason of what was given up
MOST_RESCUES = 3


class Unended(Protocol):
    """The store of job records as the rescue sees it."""

    def unended(self, shard: int, now: datetime) -> Iterator[JobView]:
        """Jobs that have not ended and whose message must be gone by now, read consistently.

        Raises:
            Unavailable: the store did not answer.
        """
        ...

    def note_rescue(self, view: JobView, look_at: datetime, now: datetime) -> None:
        """Note that the job was sent anew, if it is as it was seen, and look again then.

        Raises:
            ClaimLost: it has changed since.
            Unavailable: the store did not answer; it is sent anew once more, under the same name.
        """
        ...

    def give_up(self, view: JobView, failure: Failure, now: datetime) -> None:
        """Mark the job dead-lettered, if it is as it was seen.

        Raises:
            ClaimLost: it has changed since.
            Unavailable: the store did not answer; it is tried again.
        """
        ...


@dataclass(frozen=True, slots=True)
class Rescue:
    """Sends anew what lost its message.

    Attributes:
        workers: where the messages of a job type go; FIFO queues are left out, since a message's group is not known.
        counting: looks at those that wait for their parts.
    """

    records: Unended
    outbox: Outbox
    workers: Mapping[str, str]
    clock: Clock
    telemetry: Telemetry
    counting: Counting
    lost_after: timedelta = LOST_AFTER

    def rescue(self, shard: int, until: datetime) -> None:
        """Go through a shard until the time is up; the next invocation goes on.

        Raises:
            Unavailable: the store did not answer; nothing is lost.
        """
        for view in self.records.unended(shard, self.clock.now()):
            if self.clock.now() > until:
                return
            if view.is_held(self.clock.now()):
                continue
            try:
                if view.status is Status.WAITING and view.names["job_type"] in self.workers:
                    self.counting.look(view)  # it has no message: its parts have
                    continue
                self._rescue(view)
            except ClaimLost:
                continue  # somebody works on it: its message is there

    def _rescue(self, view: JobView) -> None:
        now = self.clock.now()
        if view.rescues >= MOST_RESCUES or not self._posted(view, now):
            failure = Failure(now, LOST, "the message is gone from its queue", LOST, None)
            self.records.give_up(view, failure, now)
            self._tell("job_lost", view)
            return
        failpoint(Failpoint.RESCUED)
        self.records.note_rescue(view, now + self.lost_after, now)
        self._tell("job_rescued", view)

    def _tell(self, what: str, view: JobView) -> None:
        self.telemetry.count(what, NO_JOB_TYPE)
        self.telemetry.warn(what, record=view.record, job_type=view.names["job_type"], rescues=view.rescues)

    def _posted(self, view: JobView, now: datetime) -> bool:
        """Post the job's message; give whether that can be done at all."""
        try:
            posting = posting_again(view, self.workers, f"rescue/{view.record}/{view.look_at}")
            if posting is not None:
                self.outbox.post(posting, now)
        except Refused:
            return False
        return posting is not None
