"""What an attempt writes of its job: the values that a store of job records takes. One value is one conditional write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shared.errors import Refused
from shared.job_record import Status
from shared.limits import check_text

if TYPE_CHECKING:
    from datetime import datetime

    from shared.item import Write
    from shared.outbox import Posting
    from shared.outcome import Failure
    from shared.parts import Part, Split, Tally
    from shared.tag import Tag


NOTE_LENGTH = 200


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a job is, for those who wait for it. It decides nothing.

    Attributes:
        done: of `total`, in whatever the job counts; both 0 or more.
        total: None where nobody knows it yet.
        note: for people, up to 200 characters.
    """

    done: int
    at: datetime
    total: int | None = None
    note: str = ""

    def __post_init__(self) -> None:
        """Refuse what nobody could show.

        Raises:
            Refused: with the rule.
        """
        if self.done < 0 or (self.total is not None and self.total < 0):
            message = f"A progress of {self.done} of {self.total}: both count from 0 on."
            raise Refused(message)
        if len(self.note) > NOTE_LENGTH:
            message = f"A note of {len(self.note)} characters: {NOTE_LENGTH} are shown."
            raise Refused(message)
        check_text(self.note, "The note")


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """How a reconciling job settles an unknown one, in its own commit.

    The settled record takes over the commit's tags. With status RETRYING the job runs again; the message that makes it run belongs into the same unit of work.
    Of a job of many steps whose call was done after all, `checkpoint` is the state behind that step, as JSON, from where it goes on.
    """

    record: str
    status: Status
    result: str | None = None
    checkpoint: str | None = None

    def __post_init__(self) -> None:
        """Refuse a status that settles nothing.

        Raises:
            Refused: with those that do.
        """
        if self.status not in {Status.COMPLETED, Status.FAILED, Status.RETRYING}:
            message = f"An unknown job is settled as completed, failed or retrying, not as {self.status.value}."
            raise Refused(message)


@dataclass(frozen=True, slots=True)
class Commit:
    """All that one transaction does: business writes, outbox items, the record's end, and an unknown job's settlement."""

    status: Status
    result: str | None = None
    tags: tuple[Tag, ...] = ()
    writes: tuple[Write, ...] = ()
    postings: tuple[Posting, ...] = ()
    reconciliations: tuple[Reconciliation, ...] = ()
    failure: Failure | None = None
    progress: Progress | None = None
    tally: Tally | None = None


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What one step of a long job commits in a transaction of its own, with the job still held.

    Attributes:
        number: of this job's checkpoints, from 1 on; the store takes each once.
        state: from where whoever takes the job over goes on, as JSON.
        settled: dependencies whose calls that cannot be repeated were answered: their intents are of the past.
        parts: jobs that are accepted by it: they are the next block of the split, which `split` counts in.
        tags: to be invalidated after it; whoever takes the job over repeats that.
    """

    number: int
    state: str
    tags: tuple[Tag, ...] = ()
    writes: tuple[Write, ...] = ()
    postings: tuple[Posting, ...] = ()
    progress: Progress | None = None
    parts: tuple[Part, ...] = ()
    split: Split | None = None
    settled: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Release:
    """How an attempt that committed nothing gives the job back.

    Attributes:
        not_before: when the next attempt may begin.
        failure: what went wrong; None where nothing did.
        gives_attempt_back: whether the attempt is not counted.
    """

    not_before: datetime
    failure: Failure | None = None
    gives_attempt_back: bool = False
