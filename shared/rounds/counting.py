"""Counting the parts of split jobs: each is retried by itself, and the parent ends after the last.

Parts are accepted by their parent's checkpoints, as jobs of a client are: record and message in one transaction. What became
of them is noted in blocks, one for the parts of each checkpoint, so that no item is hot; noting it twice changes nothing. The
stream of the job records brings the ends, in batches. A parent that waits is woken by the one write that sees all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

from shared.errors import ClaimLost
from shared.failpoints import Failpoint, failpoint
from shared.job_record import Status
from shared.parts import STATES, Ended
from shared.rounds.again import posting_again

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from shared.clock import Clock
    from shared.job_record import JobView
    from shared.outbox import Posting
    from shared.parts import Split, Tally

LOOK_EVERY = timedelta(minutes=5)  # at a parent that waits, for what the stream has lost


class Parts(Protocol):
    """The store of job records, as those see it who split jobs and count their parts."""

    def note(self, ended: Sequence[Ended]) -> None:
        """Note the ends, each in its block. Repeating it changes no count.

        Raises:
            Unavailable: the store did not answer; some are noted.
        """
        ...

    def tally(self, split: Split) -> Tally:
        """Count the ends, read consistently.

        Raises:
            Unavailable: the store did not answer.
        """
        ...

    def tell(self, parent: str, split: Split, tally: Tally) -> None:
        """Have the parent's record tell the tally, unless it is being split still or tells a later one.

        Raises:
            Unavailable: the store did not answer; the next count tells it.
        """
        ...

    def wait(self, parent: JobView, look_at: datetime, now: datetime) -> None:
        """Have the parent, held by the attempt of the view, wait for its parts; the attempt is not counted.

        Raises:
            ClaimLost: it is no longer held.
            Unavailable: the store did not answer.
        """
        ...

    def wake(self, parent: JobView, posting: Posting, now: datetime) -> None:
        """Send the message of a parent that waits, in the transaction that has it wait no more: once, whoever tries.

        Raises:
            ClaimLost: it does not wait, or no longer.
            Unavailable: the store did not answer; it may be woken.
        """
        ...

    def look_again(self, parent: JobView, look_at: datetime) -> None:
        """Look at a parent that waits then, for what the stream has lost.

        Raises:
            ClaimLost: it waits no more.
            Unavailable: the store did not answer.
        """
        ...

    def open_parts(self, split: Split) -> Iterator[JobView]:
        """The parts whose end is not noted, as their records are now.

        Raises:
            Unavailable: the store did not answer.
        """
        ...

    def all_parts(self, split: Split) -> Iterator[JobView]:
        """All parts, as their records are now.

        Raises:
            Unavailable: the store did not answer.
        """
        ...

    def view(self, record: str) -> JobView | None:
        """Read a record, consistently."""
        ...


@dataclass(frozen=True, slots=True)
class Counting:
    """Counts the ends of parts, and wakes the parents whose parts have all ended.

    Attributes:
        workers: where the messages of a job type go.
    """

    parts: Parts
    workers: Mapping[str, str]
    clock: Clock

    def count(self, ended: Sequence[Ended]) -> None:
        """Note ends that the stream brings, and settle their parents.

        Raises:
            Unavailable: a store did not answer; the stream brings the batch again.
        """
        failpoint(Failpoint.ENDS_RECEIVED)
        self.parts.note(ended)
        failpoint(Failpoint.ENDS_NOTED)
        for parent in dict.fromkeys(each.place.parent for each in ended):
            view = self.parts.view(parent)
            if view is not None:
                self.settle(view)

    def settle(self, parent: JobView) -> None:
        """Tell the tally of a parent that is split, and wake it if it waits and all its parts have ended.

        One that is still being split looks itself when it begins to wait: neither misses the last end.

        Raises:
            Unavailable: a store did not answer.
        """
        if parent.split is None:
            return
        tally = self.parts.tally(parent.split)
        self.parts.tell(parent.record, parent.split, tally)
        failpoint(Failpoint.TALLY_TOLD)
        if parent.status is not Status.WAITING or not tally.is_over:
            return
        posting = posting_again(parent, self.workers, f"woken/{parent.split.name}/{parent.checkpoints}")
        if posting is None:
            return
        try:
            self.parts.wake(parent, posting, self.clock.now())
        except ClaimLost:
            return  # by another
        failpoint(Failpoint.WOKEN)

    def look(self, parent: JobView) -> None:
        """Look at a parent that has waited for long: note the ends that the stream has lost, and settle it.

        Raises:
            ClaimLost: it waits no more.
            Unavailable: a store did not answer; nothing is lost.
        """
        if parent.split is not None:
            lost = [
                Ended(view.place, STATES[view.status])
                for view in self.parts.open_parts(parent.split)
                if view.place is not None and view.status in STATES
            ]
            self.parts.note(lost)
        self.settle(parent)
        self.parts.look_again(parent, self.clock.now() + LOOK_EVERY)
