"""Parts: jobs of their own that one job is split into. Values: where a part belongs, how it ended, what became of them all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from shared.job_record import SYSTEM, JobRequest, Status, record_id

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shared.outbox import Posting

# A checkpoint's transaction holds the parent's record, a block, and two items for each part.
PARTS_AT_ONCE = 49


class PartState(StrEnum):
    """How a part ended."""

    SUCCEEDED = "s"
    FAILED = "f"
    CANCELLED = "c"
    DEAD_LETTERED = "d"


STATES = {
    Status.COMPLETED: PartState.SUCCEEDED,
    Status.FAILED: PartState.FAILED,
    Status.CANCELLED: PartState.CANCELLED,
    Status.DEAD_LETTERED: PartState.DEAD_LETTERED,
}


@dataclass(frozen=True, slots=True)
class Split:
    """How far a job is split.

    Attributes:
        name: of this splitting, that no other has; keys of parts and blocks begin with it.
        blocks: how many there are, each with the parts of one checkpoint.
        parts: how many in all.
    """

    name: str
    blocks: int = 0
    parts: int = 0

    def block(self, number: int) -> str:
        """The key of a block's item; no job record has such a key."""
        return f"parts/{self.name}/{number}"

    def key(self, part: int) -> str:
        """The idempotency key of a part."""
        return f"{self.name}/{part}"

    def record(self, job_type: str, part: int) -> str:
        """The key of a part's job record."""
        return record_id(SYSTEM, job_type, self.key(part))


@dataclass(frozen=True, slots=True)
class Place:
    """Where a part belongs: to which parent's record, in which block, as which of its parts."""

    parent: str
    block: str
    number: int


@dataclass(frozen=True, slots=True)
class Part(JobRequest):
    """A job that is accepted by its parent's checkpoint."""

    posting: Posting
    place: Place
    trace: str | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """A part that has ended, for now: a dead letter may be replayed."""

    place: Place
    state: PartState


@dataclass(frozen=True, slots=True)
class Tally:
    """What became of a job's parts.

    Attributes:
        total: how many there are.
        changes: grows with each end that is noted, so that of two counts the later one is known.
    """

    total: int
    succeeded: int = 0
    failed: int = 0
    cancelled: int = 0
    dead_lettered: int = 0
    changes: int = 0

    @property
    def ended(self) -> int:
        """How many have ended."""
        return self.succeeded + self.failed + self.cancelled + self.dead_lettered

    @property
    def is_over(self) -> bool:
        """Whether all have."""
        return self.ended >= self.total

    def and_(self, states: Sequence[str], changes: int) -> Tally:
        """With those of one more block."""
        return replace(
            self,
            succeeded=self.succeeded + states.count(PartState.SUCCEEDED),
            failed=self.failed + states.count(PartState.FAILED),
            cancelled=self.cancelled + states.count(PartState.CANCELLED),
            dead_lettered=self.dead_lettered + states.count(PartState.DEAD_LETTERED),
            changes=self.changes + changes,
        )
