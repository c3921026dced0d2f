"""Discards dead letters: what is thrown away is in the archive first, and only what was chosen is touched.

1. Body and attributes are in the archive, on the disk. 2. The job has failed with the code `discarded`, which its client sees.
3. The letter is deleted by its receipt. Whoever dies in between repeats it: the archive then holds a letter twice.
"""

from __future__ import annotations

import json
import os
import stat
from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Self, TextIO

from ops.letters.verdict import Fate, Leave, Reopen, Send, Verdict, verdict_on
from shared.dead_letters.dead_letter import folded_in
from shared.dead_letters.operator_records import Ending
from shared.errors import ClaimLost, Refused, Unavailable
from shared.failpoints import Failpoint, failpoint
from shared.job_record import Status
from shared.limits import BATCH_ENTRIES
from shared.strict_json import json_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from ops.letters.desk import Desk
    from ops.letters.dossier import Dossier
    from shared.delivery import Delivery

CHUNK = 100
DISCARDED = Ending(Status.FAILED, json_text({"code": "discarded"}))


class Thrown(StrEnum):
    """What became of a letter that was to be discarded."""

    DISCARDED = "discarded"
    UNDER_WAY = "its job is under way"
    CHANGED = "its job changed meanwhile"
    NOT_DELETED = "SQS did not delete it"


@dataclass(slots=True)
class Archive:
    """A file of JSON Lines, a letter a line, whole: its values are not masked. Only its owner may read it."""

    path: Path
    _file: TextIO | None = None

    def __enter__(self) -> Self:
        """Open the file; what stands in it stays, and from now on only its owner may read it.

        Raises:
            OSError: it cannot be written, or is somebody else's.
        """
        number = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        self._file = os.fdopen(number, "a", encoding="utf-8")
        found = os.fstat(number)
        if stat.S_ISREG(found.st_mode):
            os.fchmod(number, 0o600)
            if found.st_size and os.pread(number, 1, found.st_size - 1) != b"\n":
                self._file.write("\n")  # whoever wrote before died within a line
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        if self._file is not None:
            self._file.close()

    def add(self, dossiers: Sequence[Dossier]) -> None:
        """Write letters, and have them on the disk.

        Raises:
            OSError: they may not be there.
        """
        assert self._file is not None  # noqa: S101 - entered
        self._file.writelines(f"{line_of(dossier)}\n" for dossier in dossiers)
        self._file.flush()
        os.fsync(self._file.fileno())


def line_of(dossier: Dossier) -> str:
    """A letter as a line of JSON, with everything that it needs to be sent once more by any tool."""
    letter: Delivery = dossier.delivery
    facts = {
        "worker": dossier.worker,
        "message_id": letter.message_id,
        "body": letter.body,
        "attributes": {**letter.attributes, **folded_in(letter)},
        "group": letter.group,
        "trace": letter.trace,
        "sequence": letter.sequence,
        "sent_at": None if letter.sent_at is None else letter.sent_at.isoformat(),
        "operation_id": dossier.operation,
        "reason": dossier.reason,
    }
    return json.dumps(facts)


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
