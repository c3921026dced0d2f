"""The file that keeps dead letters which were thrown away or exported: whole, unmasked, for its owner's eyes alone."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, TextIO

from shared.dead_letter import folded_in

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ops.letters.dossier import Dossier
    from shared.delivery import Delivery


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
