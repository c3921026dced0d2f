"""Discards dead letters: what is thrown away is in the archive first, and only what was chosen is touched.

1. Body and attributes are in the archive, on the disk. 2. The job has failed with the code `discarded`, which its client sees.
3. The letter is deleted by its receipt. Whoever dies in between repeats it: the archive then holds a letter twice.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from ops.audit import Change, audited
from ops.exits import CommandError
from ops.letters.archive import Archive
from ops.letters.verdict import Fate, Leave, Reopen, Send, Verdict, verdict_on
from shared.desk.operator_records import Ending
from shared.errors import ClaimLost, Refused, Unavailable
from shared.failpoints import Failpoint, failpoint
from shared.job_record import Status
from shared.limits import BATCH_ENTRIES
from shared.strict_json import json_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from ops.audit import Ended
    from ops.letters.desk import Desk
    from ops.letters.dossier import Dossier
    from ops.stack.deployed import Deployed
    from ops.tools import Tools

CHUNK = 100
DISCARDED = Ending(Status.FAILED, json_text({"code": "discarded"}))


class Thrown(StrEnum):
    """What became of a letter that was to be discarded."""

    DISCARDED = "discarded"
    UNDER_WAY = "its job is under way"
    CHANGED = "its job changed meanwhile"
    NOT_DELETED = "SQS did not delete it"


@dataclass(slots=True)
class Discard:
    """One run over one worker's dead letters.

    Attributes:
        only: message ids of the letters that people have agreed to; what arrived since is not touched.
        tell: called after some are done; what it raises leaves the rest untouched.
    """

    desk: Desk
    only: frozenset[str]
    archive: Archive
    tell: Callable[[], None] = lambda: None
    fates: Counter[Thrown] = field(default_factory=Counter)
    left: list[tuple[Dossier, Thrown]] = field(default_factory=list)
    _seen: set[str] = field(default_factory=set)

    def run(self) -> None:
        """Discard those of the letters that are still there.

        Raises:
            Unavailable: a store did not answer; running it again goes on.
            OSError: the archive cannot be written; what is not in it is untouched.
        """
        while self._discard_some():
            self.tell()

    def _discard_some(self) -> bool:
        with self.desk.taken(self._chooses, CHUNK) as survey:
            self._seen |= {dossier.delivery.message_id for dossier in survey.dossiers}
            verdicts = [(each, verdict_on(each, self.desk.clock.now(), None)) for each in survey.dossiers]
            free = [(each, verdict) for each, verdict in verdicts if verdict != Leave(Fate.UNDER_WAY)]
            for dossier, verdict in verdicts:
                if verdict == Leave(Fate.UNDER_WAY):
                    self._note(dossier, Thrown.UNDER_WAY)
            if free:
                self.archive.add([dossier for dossier, _ in free])
                failpoint(Failpoint.ARCHIVED)
            ended = [dossier for dossier, verdict in free if self._is_ended(dossier, verdict)]
            for place in range(0, len(ended), BATCH_ENTRIES):
                self._delete(ended[place : place + BATCH_ENTRIES], survey.gone)
            return bool(survey.dossiers)

    def _chooses(self, dossier: Dossier) -> bool:
        name = dossier.delivery.message_id
        return name in self.only and name not in self._seen

    def _is_ended(self, dossier: Dossier, verdict: Verdict) -> bool:
        """End the letter's job, where it is one that waits for a decision; give whether the letter may be deleted."""
        if dossier.view is None or not isinstance(verdict, Reopen | Send):
            return True
        try:
            self.desk.records.end(dossier.view, DISCARDED, self.desk.clock.now())
        except ClaimLost:
            self._note(dossier, Thrown.CHANGED)
            return False
        failpoint(Failpoint.ENDED_BY_PEOPLE)
        return True

    def _delete(self, dossiers: Sequence[Dossier], gone: set[str]) -> None:
        try:
            deleted = self.desk.queue.delete([dossier.delivery for dossier in dossiers])
        except (Unavailable, Refused):
            deleted = frozenset()
        gone |= deleted
        failpoint(Failpoint.LETTERS_DELETED)
        for dossier in dossiers:
            is_gone = dossier.delivery.message_id in deleted
            self._note(dossier, Thrown.DISCARDED if is_gone else Thrown.NOT_DELETED)

    def _note(self, dossier: Dossier, fate: Thrown) -> None:
        self.fates[fate] += 1
        if fate is not Thrown.DISCARDED:
            self.left.append((dossier, fate))


@dataclass(frozen=True, slots=True)
class Thrower:
    """What is told of a discard beside its letters: what was chosen in words, why, and the file that keeps it."""

    which: str
    why: str
    archive: Path


@dataclass(slots=True)
class Discarded:
    """What became of the letters that were agreed to."""

    asked: int
    fates: Counter[Thrown] = field(default_factory=Counter)
    is_over: bool = False

    @property
    def missing(self) -> int:
        """How many were not there any more, or are looked at by somebody else; nobody knows before it is over."""
        return self.asked - self.fates.total() if self.is_over else 0

    @property
    def left(self) -> int:
        """How many are there still."""
        return self.fates.total() - self.fates[Thrown.DISCARDED]

    @property
    def fields(self) -> dict[str, object]:
        """How it ended, in counts."""
        return {
            "discarded": self.fates[Thrown.DISCARDED],
            "left": {fate.value: count for fate, count in self.fates.items() if fate is not Thrown.DISCARDED} or None,
            "gone_meanwhile": self.missing or None,
        }


def throw(
    tools: Tools,
    stack: Deployed,
    found: Sequence[tuple[Desk, Dossier]],
    thrower: Thrower,
    tell: Callable[[Discarded], None] = lambda _: None,
) -> Discarded:
    """Archive and discard these letters and no others; `tell` is called with what is done whenever some are.

    Raises:
        CommandError: the audit or the archive cannot be written; what is not in the archive is untouched.
        Unavailable: a store did not answer; what is done is done.
    """
    whole = Discarded(len(found))
    ids = [dossier.delivery.message_id for _, dossier in found]
    with audited(tools, stack, Change("dlq discard", thrower.which, thrower.why, ids)) as told:
        try:
            with Archive(thrower.archive) as archive:
                for desk, only in _by_desk(found):
                    with tools.busy(f"Archiving and discarding {len(only)} dead letters of {desk.worker} ..."):
                        _discard(desk, only, archive, whole, told, tell)
        except OSError as error:
            message = f"The archive cannot be written ({type(error).__name__}): what is not in it is untouched."
            raise CommandError(message) from error
    whole.is_over = True
    return whole


def _discard(  # noqa: PLR0913, PLR0917 - what one worker's letters need, told in one place
    desk: Desk,
    only: frozenset[str],
    archive: Archive,
    whole: Discarded,
    told: Ended,
    tell: Callable[[Discarded], None],
) -> None:
    before = Counter(whole.fates)

    def note() -> None:
        whole.fates = before + discard.fates
        told.counts = {fate.value: count for fate, count in whole.fates.items()}

    def noted() -> None:
        note()
        tell(whole)

    discard = Discard(desk, only, archive, noted)
    try:
        discard.run()
    finally:  # also where it broke off: what is done is done
        note()


def _by_desk(found: Sequence[tuple[Desk, Dossier]]) -> list[tuple[Desk, frozenset[str]]]:
    names: dict[str, set[str]] = {}
    desks: dict[str, Desk] = {}
    for desk, dossier in found:
        desks[desk.worker] = desk
        names.setdefault(desk.worker, set()).add(dossier.delivery.message_id)
    return [(desks[worker], frozenset(chosen)) for worker, chosen in names.items()]
