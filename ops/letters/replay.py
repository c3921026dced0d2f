"""Replays a selection of dead letters with care: a few first, then the rest at a rate, and no further where the jobs die again.

It works in chunks that are held for seconds, so that a replay of hours hides nothing from others. What it replayed in this run it does
not replay again, also where the letter comes back at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from ops.letters.report import Report, Stop
from ops.letters.sending import Sending
from ops.letters.verdict import GONE, MOST_DEATHS, Fate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ops.letters.desk import Desk
    from ops.letters.dossier import Dossier
    from ops.letters.selection import Selection
    from ops.letters.sending import Replayed
    from shared.clock import Clock

CANARY = 5
RATE = 50.0
PATIENCE = timedelta(minutes=10)
CHUNK_TIME = timedelta(seconds=15)  # half of what is left of the time for which letters are hidden
MOST_TAKEN = 100
LOOK_AGAIN = 1.0
FEW = 5  # deaths that say nothing yet
SHARE = 0.1  # of those decided: more deaths stop the rest


@dataclass(frozen=True, slots=True)
class Care:
    """How careful a replay is.

    Attributes:
        canary: letters to begin with; the rest waits until all their jobs have ended. 0: none.
        watches: whether jobs are looked at after their replay; without it nothing stops by itself.
        patience: how long the first ones, and in the end the last ones, are watched.
        rate: letters a second; None: as fast as it goes.
        most_deaths: a letter that died more often is left; None if people insist.
    """

    canary: int = CANARY
    watches: bool = True
    patience: timedelta = PATIENCE
    rate: float | None = RATE
    most_deaths: int | None = MOST_DEATHS


@dataclass(slots=True)
class Pace:
    """Keeps to a rate: waits before letters are sent."""

    clock: Clock
    rate: float | None
    _free_at: float = 0.0

    def wait_for(self, letters: int) -> None:
        """Wait until so many letters may be sent."""
        if self.rate is None:
            return
        now = self.clock.monotonic()
        if self._free_at > now:
            self.clock.sleep(self._free_at - now)
        self._free_at = max(now, self._free_at) + letters / self.rate

    @property
    def chunk(self) -> int:
        """How many letters are taken at once."""
        return MOST_TAKEN if self.rate is None else min(MOST_TAKEN, max(1, int(self.rate * CHUNK_TIME.total_seconds())))


@dataclass(slots=True)
class Replay:
    """One run over one worker's dead letters.

    Attributes:
        by: who does it.
        tell: called whenever something is known, for whoever shows progress.
    """

    desk: Desk
    selection: Selection
    care: Care
    by: str
    tell: Callable[[Report], None] = lambda _: None
    report: Report = field(default_factory=Report)
    _done: dict[str, int] = field(default_factory=dict)
    _left: set[str] = field(default_factory=set)

    def run(self) -> Report:
        """Replay until nothing that is chosen is left, or it stops by itself.

        Raises:
            Unavailable: a store did not answer; what is done is done, and running it again goes on.
        """
        pace = Pace(self.desk.clock, self.care.rate)
        if self.care.canary and self.care.watches:
            self._replay_first(pace)
        while self.report.stop is None and self._replay_some(pace.chunk, pace):
            self._check()
        if self.report.stop is None and self.care.watches:
            self._watch_until_decided()
        return self.report

    def _replay_first(self, pace: Pace) -> None:
        """Replay the first ones, and watch all of them to their end before anything else happens."""
        report = self.report
        while report.stop is None and (missing := self.care.canary - report.fates[Fate.REPLAYED]) > 0:
            if not self._replay_some(min(missing, pace.chunk), pace):
                break
        if report.stop is not None or not (report.watched or report.unwatched):
            return
        if not report.watched:
            report.stop = Stop.NOT_WATCHED
            return
        self._watch_until_decided(ends_with_a_death=True)
        if report.deaths:
            report.stop = Stop.DIED_AGAIN
        elif report.watched:
            report.stop = Stop.UNDECIDED

    def _replay_some(self, most: int, pace: Pace) -> bool:
        """Take and replay at most so many; give whether there were any."""
        with self.desk.taken(self._chooses, most) as survey:
            if not survey.dossiers:
                self.report.stop = Stop.NOT_FOUND if survey.cut else None
                return False
            sending = Sending(
                self.desk.queue,
                self.desk.records,
                self.desk.clock,
                self.by,
                self.care.most_deaths,
                pace.wait_for,
                self.desk.mapper,
            )
            for replayed in sending.replay(survey.dossiers, survey.gone):
                self._note(replayed)
        self.tell(self.report)
        if self.report.has_failures:
            self.report.stop = Stop.NOT_DONE
        return True

    def _chooses(self, dossier: Dossier) -> bool:
        if dossier.delivery.message_id in self._left or self._came_back(dossier):
            return False
        return self.selection.chooses(dossier)

    def _came_back(self, dossier: Dossier) -> bool:
        """Whether this run has replayed the letter's job; of an unreadable one, whether its body has died since."""
        if dossier.record is not None:
            return dossier.record in self._done
        return dossier.death > self._done.get(dossier.body_hash, dossier.death)

    def _note(self, replayed: Replayed) -> None:
        dossier = replayed.dossier
        if replayed.fate in GONE:
            self._done[dossier.record or dossier.body_hash] = dossier.death
        else:
            self._left.add(dossier.delivery.message_id)
        self.report.note(replayed)

    def _watch_until_decided(self, *, ends_with_a_death: bool = False) -> None:
        deadline = self.desk.clock.monotonic() + self.care.patience.total_seconds()
        while True:
            self._look(list(self.report.watched))
            left = deadline - self.desk.clock.monotonic()
            if not self.report.watched or left <= 0 or (ends_with_a_death and self.report.deaths):
                return
            self.desk.clock.sleep(min(LOOK_AGAIN, left))

    def _check(self) -> None:
        """Look at what was replayed before, and stop where too much of it died again."""
        if not self.care.watches:
            return
        self._look(list(self.report.watched)[:MOST_TAKEN])
        report = self.report
        if report.stop is None and report.deaths >= FEW and report.deaths > SHARE * report.decided:
            report.stop = Stop.DIED_AGAIN

    def _look(self, records: Sequence[str]) -> None:
        if records:
            self.report.decide(dict(self.desk.records.views(records)))
            for record in records:  # what is not decided waits behind the others for its next look
                if record in self.report.watched:
                    self.report.watched[record] = self.report.watched.pop(record)
            self.tell(self.report)
