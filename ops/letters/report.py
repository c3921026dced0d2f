"""How a replay of dead letters stands: what became of each letter, and of the jobs that it let run again."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from ops.letters.verdict import FAILED, GONE, Fate
from shared.job_record import Status

if TYPE_CHECKING:
    from ops.letters.sending import Replayed
    from shared.job_record import JobView

ENDED_WELL = frozenset({Status.COMPLETED, Status.FAILED, Status.CANCELLED, Status.UNKNOWN})


class Stop(StrEnum):
    """Why a replay stopped by itself."""

    DIED_AGAIN = "jobs of this replay died again"
    UNDECIDED = "the first ones were not decided in time"
    NOT_WATCHED = "the first ones have no job records to watch"
    NOT_FOUND = "nothing that is chosen was among the letters that could be read in time"
    NOT_DONE = "SQS did not do what it was asked for"


@dataclass(slots=True)
class Report:
    """How a replay stands.

    Attributes:
        fates: how many letters had which fate.
        left: those that were left, with why.
        watched: replayed jobs that are not decided yet: by record, the death that their copy carried.
        unwatched: replayed letters that have no job record to watch.
        ended: jobs that ended after their replay, by status.
        died_again: those that died again, by signature.
        stop: why it stopped by itself.
    """

    fates: Counter[Fate] = field(default_factory=Counter)
    left: list[Replayed] = field(default_factory=list)
    watched: dict[str, int] = field(default_factory=dict)
    unwatched: int = 0
    ended: Counter[Status] = field(default_factory=Counter)
    died_again: Counter[str] = field(default_factory=Counter)
    stop: Stop | None = None

    @property
    def deaths(self) -> int:
        """How many died again."""
        return self.died_again.total()

    @property
    def decided(self) -> int:
        """How many ended or died again."""
        return self.ended.total() + self.deaths

    @property
    def has_failures(self) -> bool:
        """Whether AWS did not do something that it was asked for."""
        return any(self.fates[fate] for fate in FAILED)

    def add(self, part: Report) -> None:
        """Count what another worker's replay has done, too."""
        self.fates.update(part.fates)
        self.left.extend(part.left)
        self.watched.update(part.watched)
        self.unwatched += part.unwatched
        self.ended.update(part.ended)
        self.died_again.update(part.died_again)
        self.stop = self.stop or part.stop

    def note(self, replayed: Replayed) -> None:
        """Count what became of a letter."""
        self.fates[replayed.fate] += 1
        if replayed.fate not in GONE:
            self.left.append(replayed)
        if replayed.death and replayed.fate in {Fate.REPLAYED, Fate.NOT_DELETED}:
            record = replayed.dossier.record
            if record is None:
                self.unwatched += 1
            else:
                self.watched[record] = replayed.death

    def decide(self, found: dict[str, JobView]) -> None:
        """Count those of the watched jobs that have ended or died again."""
        for record, view in found.items():
            death = self.watched[record]
            if view.status is Status.DEAD_LETTERED or view.death > death:
                self.died_again["?" if view.last_failure is None else view.last_failure.signature] += 1
            elif view.status in ENDED_WELL:
                self.ended[view.status] += 1
            else:
                continue
            del self.watched[record]
